# Flags are set once, here: the precompiled header is shared by every torch target and needs equal flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

# Products and sums are rounded separately everywhere: a fused multiply-add changes the order of blended
# data and the last bit of start weights from one processor to the next.
# Designated initializers that leave the rest to the defaults are the house style for options.
add_compile_options(-ffp-contract=off -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor
                    -Wno-missing-field-initializers)
# GCC 12 sees impossible overlaps inside std::string's insert and operator+ (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)
endif()
if(SEVENFOLD_WERROR)
  add_compile_options(-Werror)
endif()
if(SEVENFOLD_SANITIZER)
  add_compile_options(-fsanitize=${SEVENFOLD_SANITIZER} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SEVENFOLD_SANITIZER})
endif()

# A torch file takes about 0.5 GB to compile and a torch program as much to link.
set_property(GLOBAL PROPERTY JOB_POOLS link_pool=1)
set(CMAKE_JOB_POOL_LINK link_pool)

# LibTorch: Debian's libtorch-dev by default, another build through -DCMAKE_PREFIX_PATH or -DTorch_DIR.
find_package(Torch QUIET)
if(NOT Torch_FOUND)
  message(FATAL_ERROR "LibTorch was not found: apt-get install libtorch-dev, or pass -DTorch_DIR=..., "
                      "or build only the planning and file tools with the preset `tools`")
endif()

# Products of fp32 matrices: LibTorch's own library for bf16, of the same distribution.
find_package(dnnl CONFIG QUIET)
if(NOT dnnl_FOUND)
  message(FATAL_ERROR "oneDNN was not found: apt-get install libdnnl-dev, or build only the planning and file tools "
                      "with the preset `tools`")
endif()

# sevenfold::torch carries what a torch file needs; its headers count as system headers.
add_library(sevenfold_torch INTERFACE)
add_library(sevenfold::torch ALIAS sevenfold_torch)
target_link_libraries(sevenfold_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(sevenfold_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})

# Debian's SentencePiece carries another version of protobuf under the same names. The library of that name, which
# Debian's LibTorch loads, has to come first in every program that holds both, or it crashes before main.
find_library(PROTOBUF_OF_TORCH NAMES libprotobuf.so.32)
if(PROTOBUF_OF_TORCH)
  target_link_options(sevenfold_torch INTERFACE
    "LINKER:--push-state,--no-as-needed,${PROTOBUF_OF_TORCH},--pop-state")
endif()

# The precompiled header (16 s once, then 2 s a file instead of 18). A speed-up, never a need:
# every file includes what it uses.
add_library(sevenfold_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(sevenfold_torch_pch PUBLIC sevenfold::torch)
target_precompile_headers(sevenfold_torch_pch PRIVATE
  <ATen/ATen.h> <torch/csrc/autograd/custom_function.h> <torch/csrc/autograd/autograd.h>
  <string> <vector> <memory> <functional>)

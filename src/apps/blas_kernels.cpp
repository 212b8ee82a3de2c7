#include "apps/blas_kernels.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace sevenfold::apps {
namespace {

constexpr const char* kCoreTypeVariable = "OPENBLAS_CORETYPE";

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

// Names of OpenBLAS's kernel sets from before AVX.
bool predates_avx(std::string_view core) {
  for (const std::string_view old :
       {"Prescott", "Katmai", "Coppermine", "Northwood", "Banias", "Core2", "Penryn", "Dunnington",
        "Nehalem", "Atom", "Athlon", "Opteron", "Barcelona", "Bobcat", "Nano"})
    if (core.substr(0, old.size()) == old) return true;
  return false;
}

}  // namespace

void restart_with_fitting_blas_kernels(char** argv) {
  if (std::getenv(kCoreTypeVariable) != nullptr || !has_avx2()) return;
  const auto core_name =
      reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core_name == nullptr || !predates_avx(core_name())) return;
  setenv(kCoreTypeVariable, "Haswell",
         1);  // set: the program that starts now does not come here again
  execv("/proc/self/exe", argv);
  unsetenv(kCoreTypeVariable);  // could not start: slow is better than not at all
}

}  // namespace sevenfold::apps

#include "sevenfold/dist/blas.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// By name at run time: the program then needs no link to OpenBLAS and runs with any other BLAS.
template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

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

constexpr int kSerialBuild = 0;  // openblas_get_parallel(): 0 serial, 1 pthread, 2 OpenMP

}  // namespace

void prepare_blas_for_rank_threads() {
  auto* get_parallel = find<int()>("openblas_get_parallel");
  if (get_parallel && get_parallel() == kSerialBuild) {
    raise<ConfigError>(
        "dist/threads: the installed OpenBLAS is the serial build, which computes wrong results "
        "when ranks are "
        "threads; install the threaded one: apt-get install libopenblas0-pthread");
  }
  if (auto* set_num_threads = find<void(int)>("openblas_set_num_threads")) set_num_threads(1);
}

void restart_with_fitting_blas_kernels(char** argv) {
  if (std::getenv(kCoreTypeVariable) != nullptr || !has_avx2()) return;
  auto* core_name = find<char*()>("openblas_get_corename");
  if (core_name == nullptr || !predates_avx(core_name())) return;
  setenv(kCoreTypeVariable, "Haswell",
         1);  // set: the program that starts now does not come here again
  execv("/proc/self/exe", argv);
  unsetenv(kCoreTypeVariable);  // could not start: slow is better than not at all
}

}  // namespace sevenfold

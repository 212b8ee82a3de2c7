#include "sevenfold/dist/blas.h"

#include <dlfcn.h>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// By name at run time: the program then needs no link to OpenBLAS and runs with any other BLAS.
template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
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

}  // namespace sevenfold

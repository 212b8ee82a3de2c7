#include <algorithm>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold::kernels {
namespace {

bool holds(const TableRows& which, int64_t index) {
  return 0 <= index && index < which.height;
}

template <typename T>
[[gnu::always_inline]] inline void add_row(const T* __restrict row, Wide<T>* __restrict sum,
                                           int64_t dim) {
  for (int64_t i = 0; i < dim; ++i) sum[i] += widen(row[i]);
}

}  // namespace

template <typename T>
void take_rows(const T* table, const TableRows& which, T* rows) {
  for (int64_t row = 0; row < which.count; ++row) {
    T* out = rows + row * which.dim;
    if (holds(which, which.index[row])) {
      std::copy_n(table + which.index[row] * which.dim, which.dim, out);
    } else {
      std::fill_n(out, which.dim, T{});
    }
  }
}

template <typename T>
void add_rows(const T* rows, const TableRows& which, Wide<T>* table) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < which.count; ++row)
      if (holds(which, which.index[row]))
        add_row<T>(rows + row * which.dim, table + which.index[row] * which.dim, which.dim);
  });
}

#define SEVENFOLD_INSTANTIATE(T)                              \
  template void take_rows<T>(const T*, const TableRows&, T*); \
  template void add_rows<T>(const T*, const TableRows&, Wide<T>*);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
SEVENFOLD_INSTANTIATE(BFloat16)
SEVENFOLD_INSTANTIATE(Float16)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

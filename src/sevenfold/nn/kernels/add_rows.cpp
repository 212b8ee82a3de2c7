#include "sevenfold/core/instruction_set.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold::kernels {
namespace {

template <typename T>
[[gnu::always_inline]] inline void add_row(const T* __restrict row, Wide<T>* __restrict sum,
                                           int64_t dim) {
  for (int64_t i = 0; i < dim; ++i) sum[i] += widen(row[i]);
}

}  // namespace

template <typename T>
void add_rows(const T* rows, const int64_t* index, Wide<T>* table, int64_t count, int64_t dim) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < count; ++row)
      add_row<T>(rows + row * dim, table + index[row] * dim, dim);
  });
}

template void add_rows<float>(const float*, const int64_t*, float*, int64_t, int64_t);
template void add_rows<double>(const double*, const int64_t*, double*, int64_t, int64_t);
template void add_rows<BFloat16>(const BFloat16*, const int64_t*, float*, int64_t, int64_t);
template void add_rows<Float16>(const Float16*, const int64_t*, float*, int64_t, int64_t);

}  // namespace sevenfold::kernels

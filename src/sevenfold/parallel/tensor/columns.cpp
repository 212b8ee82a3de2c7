#include "sevenfold/parallel/tensor/columns.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"

namespace sevenfold {

at::Tensor gathered_columns(const at::Tensor& y, const TensorParallel& tensor) {
  const int64_t rows = y.size(0), columns = y.size(1), ranks = tensor.size();
  const at::Tensor parts = at::empty({ranks, rows, columns}, y.options());
  tensor.group->all_gather(parts, y.contiguous()).wait();
  return parts.transpose(0, 1).reshape({rows, ranks * columns});
}

at::Tensor own_columns(const at::Tensor& x, const TensorParallel& tensor) {
  SEVENFOLD_CHECK(x.size(1) % tensor.size() == 0, "{} columns, {} ranks", x.size(1), tensor.size());
  const int64_t columns = x.size(1) / tensor.size();
  return x.narrow(1, tensor.rank() * columns, columns).contiguous();
}

}  // namespace sevenfold

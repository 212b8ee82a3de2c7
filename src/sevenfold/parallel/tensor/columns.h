#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// Of matrices [N, F] whose columns are cut evenly over the ranks; no gradient.

// The columns of all ranks, in rank order. y [N, F / n], result [N, F]. One all-gather.
at::Tensor gathered_columns(const at::Tensor& y, const TensorParallel& tensor);
// This rank's columns, contiguous. x [N, F], result [N, F / n].
at::Tensor own_columns(const at::Tensor& x, const TensorParallel& tensor);

}  // namespace sevenfold

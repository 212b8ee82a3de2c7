#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// A linear layer cut by its inputs, behind a column-parallel one: each rank has its columns of the
// input and gives a partial product, and the products are summed: one all-reduce of N x D in
// forward, nothing in backward.
//
//   x [N, F / n], this rank's columns;  weight [D, F / n]  ->  y [N, D] whole, on every rank
//
// weight: of one parameter (the list that backward keeps a pointer to). Keeps x, or with `again`
// only that, which gives x once more in backward. Weight, gradients and tensor outlive the graph. A
// bias is added after the sum, once (nn/bias.h).
at::Tensor row_parallel_linear(const at::Tensor& x, const std::vector<Parameter*>& weight,
                               WeightGradients& gradients, const TensorParallel& tensor,
                               const WeightGradients::InputSource& again = {});

// This rank's columns of an input that every rank has whole (input not split yet): x [N, F], result
// [N, F / n]. Backward puts the columns' gradients of all ranks side by side.
at::Tensor scatter_to_tp(const at::Tensor& x, const TensorParallel& tensor);

// The sum over the ranks of what each knows a part of: forward all-reduces, backward passes the
// gradient on, the same on every rank.
at::Tensor reduce_from_tp(const at::Tensor& x, const TensorParallel& tensor);

}  // namespace sevenfold

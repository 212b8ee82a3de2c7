#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// Linear layers cut by their outputs that read one input (q, k and v; gate and up). Every rank has
// the whole input and gives its own outputs; nothing is sent in forward. In backward each rank
// knows its outputs' share of the input's gradient, and the shares are summed: one all-reduce of
// N x D for all the layers together, under way while the weight gradients are computed.
//
//   x [N, D] whole;  weights[i] [F_i / n, D]  ->  y_i [N, F_i / n], this rank's columns
//
// Keeps x, or with `again` only that, which gives x once more in backward. Weights, gradients and
// tensor outlive the graph. With one rank: plain linear layers.
// Source: Shoeybi et al. 2019 (Megatron-LM), section 3.
std::vector<at::Tensor> column_parallel_linear(const at::Tensor& x,
                                               const std::vector<Parameter*>& weights,
                                               WeightGradients& gradients,
                                               const TensorParallel& tensor,
                                               const WeightGradients::InputSource& again = {});

// Columns y [N, F / n] of all ranks side by side (gather_output): [N, F]; for layers whose whole
// output is needed. Backward takes this rank's columns of the gradient, which is the same on all.
at::Tensor gather_from_tp(const at::Tensor& y, const TensorParallel& tensor);

}  // namespace sevenfold

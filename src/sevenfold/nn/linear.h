#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sevenfold/param/parameter.h"

namespace sevenfold {

// The products of a linear layer y = x w^T, of which parallel/ makes layers: their collectives
// stand between them. x [N, D], w [F, D], y [N, F].
at::Tensor linear_output(const at::Tensor& x, const Parameter& weight);

// dx = sum over i of dy_i w_i, of several layers that read one input; the sum is formed in fp32 or
// wider.
at::Tensor linear_input_gradient(const std::vector<at::Tensor>& d_outputs,
                                 const std::vector<Parameter*>& weights);

}  // namespace sevenfold

#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// y = x * w^T. x [N, D], w [F, D], y [N, F]. Backward: dx = dy * w, and dw goes to `gradients`.
// Keeps x; the weight is looked up again when backward runs. Parameter and gradients outlive the
// graph.
at::Tensor linear(const at::Tensor& x, const Parameter& weight, WeightGradients& gradients);

}  // namespace sevenfold

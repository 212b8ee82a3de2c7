#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/param/parameter.h"

namespace sevenfold {

// y = (x - mean) / sqrt(variance + eps) * gain + bias over the last dimension, the variance divided
// by D. x [..., D], gain and bias [D]. Keeps x and two figures per row. The gradients of gain and
// bias are added to the parameters when backward runs. Source: Ba et al. 2016.
at::Tensor layer_norm(const at::Tensor& x, const Parameter& gain, const Parameter& bias,
                      double eps);

}  // namespace sevenfold

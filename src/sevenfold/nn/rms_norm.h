#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/param/parameter.h"

namespace sevenfold {

// y = x / sqrt(mean(x^2) + eps) * gain over the last dimension. x [..., D], gain [D].
// The gain's gradient is added to the parameter when backward runs. Source: Zhang and Sennrich
// 2019.
at::Tensor rms_norm(const at::Tensor& x, const Parameter& gain, double eps);

}  // namespace sevenfold

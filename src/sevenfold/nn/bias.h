#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/core/faults.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// y = x + bias in every row. x [N, F], bias [F]. Keeps nothing; the bias's gradient, the sum over
// the rows, is added to the parameter when backward runs. Of its own, not part of a linear layer:
// where that is split by its inputs, the bias is added once, after the sum.
at::Tensor add_bias(const at::Tensor& x, const Parameter& bias, FaultSet faults = {});

}  // namespace sevenfold

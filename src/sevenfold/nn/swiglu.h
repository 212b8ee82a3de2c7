#pragma once

#include <ATen/core/Tensor.h>

namespace sevenfold {

// silu(gate) * up with silu(a) = a / (1 + e^-a). Keeps gate and up. Source: Shazeer 2020.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace sevenfold

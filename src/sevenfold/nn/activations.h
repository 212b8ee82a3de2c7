#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Feed-forward activations; formulas at config's Activation. Gated ones multiply by a second
// projection and keep gate and up; the others keep their input. Arithmetic is in fp32 at the
// least, and results are rounded once.
// Sources: Hendrycks and Gimpel 2016 (GELU), So et al. 2021 (squared ReLU), Shazeer 2020 (gated).

// kGelu, kGeluTanh or kSquaredRelu of x.
at::Tensor activate(Activation activation, const at::Tensor& x);

// kSwiglu or kQuickGeglu: activation(gate) * up.
at::Tensor activate_gated(Activation activation, const at::Tensor& gate, const at::Tensor& up);

}  // namespace sevenfold

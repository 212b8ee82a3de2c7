#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sevenfold/param/parameter.h"

namespace sevenfold {

// LayerNorm, or without a bias RMSNorm, over the last dimension.
struct Norm {
  Parameter* gain = nullptr;
  Parameter* bias = nullptr;
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& x) const;
  void list_parameters(std::vector<Parameter*>& list) const;
};

}  // namespace sevenfold

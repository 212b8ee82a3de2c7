#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// A linear layer of the model: x w^T, plus the bias if it has one. x [N, inputs], result [N,
// outputs].
struct Projection {
  Parameter* weight = nullptr;
  Parameter* bias = nullptr;

  at::Tensor operator()(const at::Tensor& x, WeightGradients& gradients) const;
  void list_parameters(std::vector<Parameter*>& list) const;
};

}  // namespace sevenfold

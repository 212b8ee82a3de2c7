#pragma once

#include <string>
#include <vector>

#include "sevenfold/model/parameter_list.h"

namespace sevenfold {

// down(activation(gate(x)) * up(x)), or without a gate down(activation(up(x))).
class FeedForward {
 public:
  FeedForward(const ModelConfig& config, const std::string& name, ParameterList& parameters);

  at::Tensor operator()(const at::Tensor& x_BTD, WeightGradients& gradients) const;
  void list_parameters(std::vector<Parameter*>& list) const;

 private:
  Activation activation_;
  Projection gate_;  // without a weight: none
  Projection up_, down_;
};

}  // namespace sevenfold

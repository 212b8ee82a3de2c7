#include "sevenfold/model/feed_forward.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/activations.h"

namespace sevenfold {

FeedForward::FeedForward(const ModelConfig& config, const std::string& name,
                         ParameterList& parameters)
    : activation_(config.activation) {
  const int64_t d = config.hidden_size, f = config.ffn_hidden_size;
  const bool bias = config.linear_bias;
  if (is_gated(activation_))
    gate_ = parameters.projection(name + "gate_proj", ParameterKind::kMatrix, f, d, bias);
  up_ = parameters.projection(name + "up_proj", ParameterKind::kMatrix, f, d, bias);
  down_ = parameters.projection(name + "down_proj", ParameterKind::kOutputMatrix, d, f, bias);
}

at::Tensor FeedForward::operator()(const at::Tensor& x_BTD, WeightGradients& gradients) const {
  const at::Tensor x_ND = x_BTD.view({-1, x_BTD.size(2)});
  at::Tensor wide_NF;
  if (gate_.weight) {
    const at::Tensor gate_NF = gate_(x_ND, gradients);
    wide_NF = activate_gated(activation_, gate_NF, up_(x_ND, gradients));
  } else {
    wide_NF = activate(activation_, up_(x_ND, gradients));
  }
  return down_(wide_NF, gradients).view_as(x_BTD);
}

void FeedForward::list_parameters(std::vector<Parameter*>& list) const {
  if (gate_.weight) gate_.list_parameters(list);
  up_.list_parameters(list);
  down_.list_parameters(list);
}

}  // namespace sevenfold

#include "sevenfold/model/feed_forward.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/activations.h"

namespace sevenfold {

FeedForward::FeedForward(const ModelConfig& config, const ModelOptions& options,
                         const std::string& name, ParameterList& parameters)
    : activation_(config.activation), wide_(options.tensor) {
  const int64_t d = config.hidden_size, f = config.ffn_hidden_size;
  const LinearSize wide{f, d, config.linear_bias};
  if (is_gated(activation_)) wide_.add(parameters.column_parallel(name + "gate_proj", wide));
  wide_.add(parameters.column_parallel(name + "up_proj", wide));
  down_ = {options.tensor, parameters.row_parallel(name + "down_proj", {d, f, config.linear_bias})};
}

at::Tensor FeedForward::operator()(const at::Tensor& x_BTD, WeightGradients& gradients) const {
  const std::vector<at::Tensor> wide = wide_(x_BTD, gradients);
  const at::Tensor wide_NF = is_gated(activation_) ? activate_gated(activation_, wide[0], wide[1])
                                                   : activate(activation_, wide[0]);
  return down_(wide_NF, x_BTD.size(0), gradients);
}

void FeedForward::list_parameters(std::vector<Parameter*>& list) const {
  wide_.list_parameters(list);
  down_.list_parameters(list);
}

}  // namespace sevenfold

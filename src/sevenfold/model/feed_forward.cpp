#include "sevenfold/model/feed_forward.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/activations.h"

namespace sevenfold {

FeedForward::FeedForward(const ModelConfig& config, const ModelOptions& options,
                         const std::string& name, ParameterList& parameters)
    : activation_(config.activation),
      recomputes_activation_(options.recompute.activation && !options.recompute.feed_forward),
      wide_(options.tensor) {
  const int64_t d = config.hidden_size, f = config.ffn_hidden_size;
  const LinearSize wide{f, d, config.linear_bias};
  if (is_gated(activation_)) wide_.add(parameters.column_parallel(name + "gate_proj", wide));
  wide_.add(parameters.column_parallel(name + "up_proj", wide));
  down_ = {options.tensor, parameters.row_parallel(name + "down_proj", {d, f, config.linear_bias})};
}

at::Tensor FeedForward::operator()(const at::Tensor& x_BTD, WeightGradients& gradients,
                                   const WeightGradients::InputSource& again) const {
  const std::vector<at::Tensor> wide = wide_(x_BTD, gradients, again);
  WeightGradients::InputSource activated_again;
  if (recomputes_activation_) {
    std::vector<at::Tensor> kept;  // what the activation's own backward keeps anyway
    for (const at::Tensor& each : wide) kept.push_back(each.detach());
    activated_again = [this, kept] {
      const at::NoGradGuard no_graph;
      return activate_wide(kept);
    };
  }
  return down_(activate_wide(wide), x_BTD.size(0), gradients, activated_again);
}

at::Tensor FeedForward::activate_wide(const std::vector<at::Tensor>& wide) const {
  return is_gated(activation_) ? activate_gated(activation_, wide[0], wide[1])
                               : activate(activation_, wide[0]);
}

void FeedForward::list_parameters(std::vector<Parameter*>& list) const {
  wide_.list_parameters(list);
  down_.list_parameters(list);
}

}  // namespace sevenfold

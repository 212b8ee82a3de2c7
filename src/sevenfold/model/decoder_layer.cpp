#include "sevenfold/model/decoder_layer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "sevenfold/nn/recomputed.h"

namespace sevenfold {

DecoderLayer::DecoderLayer(const ModelConfig& config, const ModelOptions& options, int64_t layer,
                           ParameterList& parameters, std::shared_ptr<const RotaryTable> rotary)
    : DecoderLayer(config, options, layer, fmt::format("model.layers.{}.", layer), parameters,
                   std::move(rotary)) {}

DecoderLayer::DecoderLayer(const ModelConfig& config, const ModelOptions& options, int64_t layer,
                           const std::string& name, ParameterList& parameters,
                           std::shared_ptr<const RotaryTable> rotary)
    : Layer(layer + 1),
      recompute_(options.recompute),
      input_norm_(parameters.norm(name + "input_layernorm", config.hidden_size, config,
                                  NormPlace::kHiddenState)),
      attention_(config, options, layer, name + "self_attn.", parameters, std::move(rotary)),
      attention_norm_(parameters.norm(name + "post_attention_layernorm", config.hidden_size, config,
                                      NormPlace::kHiddenState)),
      feed_forward_(config, options, name + "mlp.", parameters),
      attention_dropout_(config.hidden_dropout, RandomOperation::kAttentionOutputDropout, layer,
                         options),
      feed_forward_dropout_(config.hidden_dropout, RandomOperation::kFeedForwardDropout, layer,
                            options) {}

LayerOutput DecoderLayer::forward(const LayerInput& input) const {
  const Microbatch& microbatch = *input.microbatch;
  const at::Tensor h_BTD =
      input.boundary.hidden_BTD + attention_dropout_(attend(input), microbatch);
  const at::Tensor y_BTD =
      h_BTD + feed_forward_dropout_(feed_forward(h_BTD, *input.weight_gradients), microbatch);
  return {.boundary = {y_BTD}, .losses = {}};
}

at::Tensor DecoderLayer::attend(const LayerInput& input) const {
  const at::Tensor& x_BTD = input.boundary.hidden_BTD;
  return attention_(input_norm_(x_BTD), input, norm_again(input_norm_, x_BTD));
}

at::Tensor DecoderLayer::feed_forward(const at::Tensor& h_BTD, WeightGradients& gradients) const {
  if (!recompute_.feed_forward)
    return feed_forward_(attention_norm_(h_BTD), gradients, norm_again(attention_norm_, h_BTD));
  if (recompute_.norms)
    return recomputed(h_BTD, [this, &gradients](const at::Tensor& h) {
      return feed_forward_(attention_norm_(h), gradients);
    });
  return recomputed(attention_norm_(h_BTD), [this, &gradients](const at::Tensor& normed) {
    return feed_forward_(normed, gradients);
  });
}

WeightGradients::InputSource DecoderLayer::norm_again(const Norm& norm,
                                                      const at::Tensor& x_BTD) const {
  if (!recompute_.norms) return {};
  return [&norm, x = x_BTD.detach()] {
    const at::NoGradGuard no_graph;
    return norm(x);
  };
}

std::vector<Parameter*> DecoderLayer::parameters() const {
  std::vector<Parameter*> list;
  input_norm_.list_parameters(list);
  attention_.list_parameters(list);
  attention_norm_.list_parameters(list);
  feed_forward_.list_parameters(list);
  return list;
}

}  // namespace sevenfold

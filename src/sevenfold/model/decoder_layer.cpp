#include "sevenfold/model/decoder_layer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sevenfold {

DecoderLayer::DecoderLayer(const ModelConfig& config, const ModelOptions& options, int64_t layer,
                           ParameterList& parameters, std::shared_ptr<const RotaryTable> rotary)
    : DecoderLayer(config, options, layer, fmt::format("model.layers.{}.", layer), parameters,
                   std::move(rotary)) {}

DecoderLayer::DecoderLayer(const ModelConfig& config, const ModelOptions& options, int64_t layer,
                           const std::string& name, ParameterList& parameters,
                           std::shared_ptr<const RotaryTable> rotary)
    : input_norm_(parameters.norm(name + "input_layernorm", config.hidden_size, config,
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
  const at::Tensor& x_BTD = input.boundary.hidden_BTD;
  const at::Tensor h_BTD =
      x_BTD + attention_dropout_(attention_(input_norm_(x_BTD), input), microbatch);
  const at::Tensor y_BTD =
      h_BTD + feed_forward_dropout_(feed_forward_(attention_norm_(h_BTD), *input.weight_gradients),
                                    microbatch);
  return {.boundary = {y_BTD}, .losses = {}};
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

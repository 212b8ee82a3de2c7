#include "sevenfold/model/model.h"

#include <algorithm>

#include "sevenfold/model/decoder_layer.h"
#include "sevenfold/model/embedding_layer.h"
#include "sevenfold/model/head_layer.h"

namespace sevenfold {
namespace {

std::shared_ptr<const RotaryTable> model_rotary(const ModelConfig& config, at::ScalarType dtype) {
  if (config.positions != PositionKind::kRotary) return nullptr;
  return std::make_shared<const RotaryTable>(
      rotary_table({.length = config.seq_length,
                    .head_size = config.kv_channels,
                    .percent = config.rotary_percent,
                    .base = config.rotary_base,
                    .interleaved = config.rotary_interleaved,
                    .interpolation = config.rotary_interpolation,
                    .scaling = config.rope_scaling},
                   dtype));
}

}  // namespace

std::vector<std::vector<Parameter*>> ModelPart::layer_parameters() const {
  std::vector<std::vector<Parameter*>> result;
  for (const auto& layer : layers) result.push_back(layer->parameters());
  return result;
}

std::vector<Parameter*> ModelPart::all_parameters() const {
  std::vector<Parameter*> result;
  for (const auto& parameter : parameters) result.push_back(parameter.get());
  return result;
}

ModelPart build_model(const ModelConfig& config, const ModelOptions& options) {
  ParameterList parameters(options.tensor);
  ModelPart part;
  auto embedding = std::make_unique<EmbeddingLayer>(config, options, parameters);
  Parameter* tied_table = config.tied_embeddings ? embedding->token_table() : nullptr;
  part.layers.push_back(std::move(embedding));
  const auto rotary = model_rotary(config, options.dtype);
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    part.layers.push_back(
        std::make_unique<DecoderLayer>(config, options, layer, parameters, rotary));
  part.layers.push_back(std::make_unique<HeadLayer>(config, options, parameters, tied_table));
  part.parameters = parameters.take();
  return part;
}

int64_t num_parameters(const ModelConfig& config) {
  return max_local_parameters(config, 1);
}

int64_t max_local_parameters(const ModelConfig& config, int64_t tp) {
  const int64_t d = config.hidden_size, f = config.ffn_hidden_size / tp;
  const int64_t q_rows = config.num_attention_heads / tp * config.kv_channels;
  const int64_t kv_rows = std::max<int64_t>(1, config.num_query_groups / tp) * config.kv_channels;
  const int64_t wide = is_gated(config.activation) ? 2 : 1;                   // gate and up, or up
  const int64_t per_component = config.norm == NormKind::kLayerNorm ? 2 : 1;  // gain and bias
  int64_t layer = 2 * d * (q_rows + kv_rows) + (wide + 1) * d * f + 2 * per_component * d;
  if (config.linear_bias || config.qkv_bias) layer += q_rows + 2 * kv_rows;
  if (config.linear_bias) layer += d + wide * f + d;
  if (config.qk_norm) layer += 2 * per_component * config.kv_channels;
  int64_t tables = (config.tied_embeddings ? 1 : 2) * ((config.vocab_size + tp - 1) / tp) * d;
  if (config.positions == PositionKind::kLearned) tables += config.max_position_embeddings * d;
  return config.num_layers * layer + tables + per_component * d;
}

}  // namespace sevenfold

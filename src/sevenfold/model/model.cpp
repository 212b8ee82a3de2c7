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

std::vector<Parameter*> parameters_of(const std::vector<ModelPart>& parts) {
  std::vector<Parameter*> all;
  for (const ModelPart& part : parts)
    for (const auto& parameter : part.parameters) all.push_back(parameter.get());
  return all;
}

std::vector<std::vector<Parameter*>> layer_parameters_of(const std::vector<ModelPart>& parts) {
  std::vector<std::vector<Parameter*>> all;
  for (const ModelPart& part : parts)
    for (auto& layer : part.layer_parameters()) all.push_back(std::move(layer));
  return all;
}

std::vector<LayerRange> layer_ranges(const std::vector<ModelPart>& parts) {
  std::vector<LayerRange> ranges;
  int64_t begin = 0;
  for (const ModelPart& part : parts) {
    const int64_t end = begin + static_cast<int64_t>(part.layers.size());
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

namespace {

StageLayers whole_model(const ModelConfig& config) {
  return {.num_layers = config.num_layers, .has_embedding = true, .has_head = true};
}

// Builds the stages of one rank, which may share a tied table and a table of rotary angles.
class StageBuilder {
 public:
  StageBuilder(const ModelConfig& config, const ModelOptions& options)
      : config_(config),
        options_(options),
        parameters_(options.tensor),
        rotary_(model_rotary(config, options.dtype)) {}

  ModelPart build(const ModelStage& stage) {
    ModelPart part;
    parameters_.set_owners(stage.owners);
    if (stage.layers.has_embedding) part.layers.push_back(embedding(stage));
    const int64_t first = stage.layers.first_layer;
    for (int64_t layer = first; layer < first + stage.layers.num_layers; ++layer)
      part.layers.push_back(
          std::make_unique<DecoderLayer>(config_, options_, layer, parameters_, rotary_));
    if (stage.layers.has_head) part.layers.push_back(head(stage));
    part.parameters = parameters_.take();
    return part;
  }

 private:
  std::unique_ptr<Layer> embedding(const ModelStage& stage) {
    if (config_.tied_embeddings) declare_tied_table(stage);
    return std::make_unique<EmbeddingLayer>(config_, options_, parameters_, tied_table_);
  }

  std::unique_ptr<Layer> head(const ModelStage& stage) {
    if (config_.tied_embeddings && tied_table_ == nullptr) declare_tied_table(stage);
    return std::make_unique<HeadLayer>(config_, options_, parameters_, tied_table_);
  }

  void declare_tied_table(const ModelStage& stage) {
    parameters_.set_owners(stage.table_owners);
    tied_table_ = EmbeddingLayer::declare_table(config_, parameters_);
    parameters_.set_owners(stage.owners);
  }

  const ModelConfig& config_;
  const ModelOptions& options_;
  ParameterList parameters_;
  std::shared_ptr<const RotaryTable> rotary_;
  Parameter* tied_table_ = nullptr;
};

}  // namespace

ModelPart build_model(const ModelConfig& config, const ModelOptions& options) {
  return StageBuilder(config, options).build({.layers = whole_model(config)});
}

std::vector<ModelPart> build_stages(const ModelConfig& config, const ModelOptions& options,
                                    const std::vector<ModelStage>& stages) {
  StageBuilder builder(config, options);
  std::vector<ModelPart> parts;
  for (const ModelStage& stage : stages) parts.push_back(builder.build(stage));
  return parts;
}

int64_t num_parameters(const ModelConfig& config) {
  return max_local_parameters(config, 1);
}

int64_t max_local_parameters(const ModelConfig& config, int64_t tp) {
  const int64_t table = (config.vocab_size + tp - 1) / tp * config.hidden_size;
  return max_local_parameters(config, tp, whole_model(config)) -
         (config.tied_embeddings ? table : 0);
}

int64_t max_local_parameters(const ModelConfig& config, int64_t tp, const StageLayers& stage) {
  const int64_t d = config.hidden_size, f = config.ffn_hidden_size / tp;
  const int64_t q_rows = config.num_attention_heads / tp * config.kv_channels;
  const int64_t kv_rows = std::max<int64_t>(1, config.num_query_groups / tp) * config.kv_channels;
  const int64_t wide = is_gated(config.activation) ? 2 : 1;                   // gate and up, or up
  const int64_t per_component = config.norm == NormKind::kLayerNorm ? 2 : 1;  // gain and bias
  int64_t layer = 2 * d * (q_rows + kv_rows) + (wide + 1) * d * f + 2 * per_component * d;
  if (config.linear_bias || config.qkv_bias) layer += q_rows + 2 * kv_rows;
  if (config.linear_bias) layer += d + wide * f + d;
  if (config.qk_norm) layer += 2 * per_component * config.kv_channels;
  const int64_t table = (config.vocab_size + tp - 1) / tp * d;
  int64_t parameters = stage.num_layers * layer;
  if (stage.has_embedding) parameters += table;
  if (stage.has_embedding && config.positions == PositionKind::kLearned)
    parameters += config.max_position_embeddings * d;
  if (stage.has_head) parameters += table + per_component * d;
  return parameters;
}

}  // namespace sevenfold

// Shape letters: B samples, T tokens, D hidden size, F feed-forward width, N = B * T, V vocabulary.

#include "sevenfold/model/llama.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "sevenfold/nn/attention.h"
#include "sevenfold/nn/cross_entropy.h"
#include "sevenfold/nn/embedding.h"
#include "sevenfold/nn/linear.h"
#include "sevenfold/nn/rms_norm.h"
#include "sevenfold/nn/rotary.h"
#include "sevenfold/nn/swiglu.h"

namespace sevenfold {
namespace {

class EmbeddingLayer final : public Layer {
 public:
  explicit EmbeddingLayer(Parameter* table) : table_(table) {}

  LayerOutput forward(const LayerInput& input) const override {
    return {.boundary = {embedding(input.microbatch->inputs_BT, input.anchor, *table_)},
            .losses = {}};
  }
  std::vector<Parameter*> parameters() const override { return {table_}; }

 private:
  Parameter* table_;
};

struct DecoderParameters {
  Parameter *input_norm, *q, *k, *v, *o, *attention_norm, *gate, *up, *down;
};

class DecoderLayer final : public Layer {
 public:
  DecoderLayer(const ModelConfig& config, const DecoderParameters& parameters,
               std::shared_ptr<const RotaryTable> rotary)
      : p_(parameters),
        rotary_(std::move(rotary)),
        heads_(config.num_attention_heads),
        groups_(config.num_query_groups),
        head_size_(config.kv_channels),
        epsilon_(config.norm_epsilon) {}

  LayerOutput forward(const LayerInput& input) const override {
    WeightGradients& gradients = *input.weight_gradients;
    const at::Tensor& x_BTD = input.boundary.hidden_BTD;
    const at::Tensor h_BTD =
        x_BTD + attention(rms_norm(x_BTD, *p_.input_norm, epsilon_), gradients);
    const at::Tensor y_BTD =
        h_BTD + feed_forward(rms_norm(h_BTD, *p_.attention_norm, epsilon_), gradients);
    return {.boundary = {y_BTD}, .losses = {}};
  }

  std::vector<Parameter*> parameters() const override {
    return {p_.input_norm, p_.q, p_.k, p_.v, p_.o, p_.attention_norm, p_.gate, p_.up, p_.down};
  }

 private:
  at::Tensor attention(const at::Tensor& x_BTD, WeightGradients& gradients) const {
    const int64_t b = x_BTD.size(0), t = x_BTD.size(1);
    const at::Tensor x_ND = x_BTD.view({b * t, x_BTD.size(2)});
    const auto project = [&](const Parameter& weight, int64_t heads) {
      return linear(x_ND, weight, gradients).view({b, t, heads, head_size_});
    };
    const at::Tensor q = rotate(project(*p_.q, heads_), *rotary_);
    const at::Tensor k = rotate(project(*p_.k, groups_), *rotary_);
    const at::Tensor v = project(*p_.v, groups_);
    const at::Tensor mixed =
        causal_attention(q, k, v, 1.0 / std::sqrt(static_cast<double>(head_size_)));
    return linear(mixed.view({b * t, heads_ * head_size_}), *p_.o, gradients).view_as(x_BTD);
  }

  at::Tensor feed_forward(const at::Tensor& x_BTD, WeightGradients& gradients) const {
    const at::Tensor x_ND = x_BTD.view({-1, x_BTD.size(2)});
    const at::Tensor gate_NF = linear(x_ND, *p_.gate, gradients);
    const at::Tensor up_NF = linear(x_ND, *p_.up, gradients);
    return linear(swiglu(gate_NF, up_NF), *p_.down, gradients).view_as(x_BTD);
  }

  DecoderParameters p_;
  std::shared_ptr<const RotaryTable> rotary_;  // one table for all layers
  int64_t heads_, groups_, head_size_;
  double epsilon_;
};

// Final norm, output table and loss.
class HeadLayer final : public Layer {
 public:
  HeadLayer(Parameter* norm, Parameter* table, double epsilon)
      : norm_(norm), table_(table), epsilon_(epsilon) {}

  LayerOutput forward(const LayerInput& input) const override {
    const Microbatch& microbatch = *input.microbatch;
    const at::Tensor& x_BTD = input.boundary.hidden_BTD;
    const at::Tensor x_ND = rms_norm(x_BTD, *norm_, epsilon_).view({-1, x_BTD.size(2)});
    const at::Tensor logits_NV = linear(x_ND, *table_, *input.weight_gradients);
    const at::Tensor loss = cross_entropy_sum(logits_NV, microbatch.labels_BT.reshape(-1),
                                              microbatch.mask_BT.reshape(-1));
    return {.boundary = {}, .losses = {{loss, microbatch.loss_seed}}};
  }
  std::vector<Parameter*> parameters() const override { return {norm_, table_}; }

 private:
  Parameter* norm_;
  Parameter* table_;
  double epsilon_;
};

class LlamaBuilder {
 public:
  explicit LlamaBuilder(const ModelConfig& config) : config_(config) {}

  ModelPart build(at::ScalarType dtype) {
    Parameter* table = add("model.embed_tokens.weight", ParameterKind::kTable,
                           {config_.vocab_size, config_.hidden_size});
    part_.layers.push_back(std::make_unique<EmbeddingLayer>(table));
    const auto rotary = std::make_shared<const RotaryTable>(
        rotary_table(config_.seq_length, config_.kv_channels, config_.rotary_percent,
                     config_.rotary_base, dtype));
    for (int64_t layer = 0; layer < config_.num_layers; ++layer)
      part_.layers.push_back(
          std::make_unique<DecoderLayer>(config_, decoder_parameters(layer), rotary));
    Parameter* norm = add("model.norm.weight", ParameterKind::kGain, {config_.hidden_size});
    Parameter* head = config_.tied_embeddings ? table
                                              : add("lm_head.weight", ParameterKind::kMatrix,
                                                    {config_.vocab_size, config_.hidden_size});
    part_.layers.push_back(std::make_unique<HeadLayer>(norm, head, config_.norm_epsilon));
    return std::move(part_);
  }

 private:
  Parameter* add(const std::string& name, ParameterKind kind, std::vector<int64_t> shape) {
    part_.parameters.push_back(
        std::make_unique<Parameter>(name, kind, replicated_spec(std::move(shape))));
    return part_.parameters.back().get();
  }

  DecoderParameters decoder_parameters(int64_t layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const int64_t d = config_.hidden_size, f = config_.ffn_hidden_size;
    const int64_t q_rows = config_.num_attention_heads * config_.kv_channels;
    const int64_t kv_rows = config_.num_query_groups * config_.kv_channels;
    DecoderParameters p{};
    p.input_norm = add(prefix + "input_layernorm.weight", ParameterKind::kGain, {d});
    p.q = add(prefix + "self_attn.q_proj.weight", ParameterKind::kMatrix, {q_rows, d});
    p.k = add(prefix + "self_attn.k_proj.weight", ParameterKind::kMatrix, {kv_rows, d});
    p.v = add(prefix + "self_attn.v_proj.weight", ParameterKind::kMatrix, {kv_rows, d});
    p.o = add(prefix + "self_attn.o_proj.weight", ParameterKind::kOutputMatrix, {d, q_rows});
    p.attention_norm = add(prefix + "post_attention_layernorm.weight", ParameterKind::kGain, {d});
    p.gate = add(prefix + "mlp.gate_proj.weight", ParameterKind::kMatrix, {f, d});
    p.up = add(prefix + "mlp.up_proj.weight", ParameterKind::kMatrix, {f, d});
    p.down = add(prefix + "mlp.down_proj.weight", ParameterKind::kOutputMatrix, {d, f});
    return p;
  }

  const ModelConfig& config_;
  ModelPart part_;
};

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

ModelPart build_llama(const ModelConfig& config, at::ScalarType dtype) {
  return LlamaBuilder(config).build(dtype);
}

int64_t num_parameters(const ModelConfig& config) {
  const int64_t d = config.hidden_size;
  const int64_t head_rows =
      config.kv_channels * (config.num_attention_heads + config.num_query_groups);
  const int64_t layer = 2 * d * head_rows + 3 * d * config.ffn_hidden_size + 2 * d;
  const int64_t tables = (config.tied_embeddings ? 1 : 2) * config.vocab_size * d;
  return config.num_layers * layer + tables + d;
}

}  // namespace sevenfold

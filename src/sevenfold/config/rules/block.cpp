#include "sevenfold/config/rules/rules.h"

// What a transformer block is made of: norms, activation, biases, positions, dropout.

namespace sevenfold::config {
namespace {

double in_range(const Parameters& parameters, const char* key, double above, double at_most) {
  const double value = parameters.number(key);
  if (!(value > above) || value > at_most)
    raise_rule("model.range", "config: {}: must be above {} and at most {}", parameters.where(key),
               above, at_most);
  return value;
}

// Primus presets write norm_epsilon, which Megatron does not read; its own key is
// layernorm_epsilon.
double resolve_norm_epsilon(Parameters& parameters) {
  if (!parameters.is_null("layernorm_epsilon"))
    return in_range(parameters, "layernorm_epsilon", 0.0, 1.0);
  const double epsilon = in_range(parameters, "norm_epsilon", 0.0, 1.0);
  if (epsilon != 1e-5)
    parameters.notice(fmt::format(
        "{}: acts here; Primus ignores this key and uses 1e-05 (set layernorm_epsilon to "
        "choose for both)",
        parameters.where("norm_epsilon")));
  return epsilon;
}

void resolve_norms(Parameters& parameters, ModelConfig& model) {
  const std::string kind = parameters.string("normalization");
  if (kind != "RMSNorm" && kind != "LayerNorm")
    raise_rule("model.norm", "config: {} is not a norm; use RMSNorm or LayerNorm",
               parameters.where("normalization"));
  model.norm = kind == "RMSNorm" ? NormKind::kRmsNorm : NormKind::kLayerNorm;
  model.norm_epsilon = resolve_norm_epsilon(parameters);
  model.qk_norm = parameters.boolean("qk_layernorm");
}

Activation resolve_activation(const Parameters& parameters) {
  constexpr std::pair<const char*, Activation> kChoices[] = {
      {"swiglu", Activation::kSwiglu},
      {"quick_geglu", Activation::kQuickGeglu},
      {"openai_gelu", Activation::kGeluTanh},
      {"squared_relu", Activation::kSquaredRelu}};
  const char* chosen = nullptr;
  Activation activation = Activation::kGelu;
  for (const auto& [key, value] : kChoices) {
    if (!parameters.boolean(key)) continue;
    if (chosen != nullptr)
      raise_rule("model.activation",
                 "config: {}: {}=true is set too, and an MLP has one activation; use {}=false",
                 parameters.where(key), chosen, chosen);
    chosen = key;
    activation = value;
  }
  return activation;
}

void resolve_dropout(const Parameters& parameters, ModelConfig& model) {
  const auto rate = [&](const char* key) {
    const double value = parameters.number(key);
    if (!(value >= 0.0) || value >= 1.0)
      raise_rule("model.range", "config: {}: a dropout rate is at least 0 and below 1; use {}=0.0",
                 parameters.where(key), key);
    return value;
  };
  model.hidden_dropout = rate("hidden_dropout");
  model.attention_dropout = rate("attention_dropout");
}

PositionKind position_kind(Parameters& parameters) {
  const std::string kind = parameters.string("position_embedding_type");
  if (kind == "rope" || parameters.boolean("use_rotary_position_embeddings"))
    return PositionKind::kRotary;
  if (kind == "learned_absolute") return PositionKind::kLearned;
  if (kind == "none") return PositionKind::kNone;
  if (kind != "yarn" && kind != "mrope" && kind != "relative")
    raise_rule("model.positions",
               "config: {} is no kind of positions; use rope, learned_absolute or none",
               parameters.where("position_embedding_type"));
  parameters.unsupported(
      "position_embedding_type",
      fmt::format("config: {} is not supported yet; use rope, learned_absolute or none",
                  parameters.where("position_embedding_type")));
  return PositionKind::kNone;
}

void resolve_rope_scaling(const Parameters& parameters, ModelConfig& model) {
  if (!parameters.boolean("use_rope_scaling")) return;
  RopeScaling scaling;
  scaling.factor = in_range(parameters, "rope_scaling_factor", 0.0, 1e9);
  if (const auto length = parameters.optional_integer("original_max_position_embeddings")) {
    if (*length < 1 || *length > kMaxSize)
      raise_rule("model.positive", "config: {}: must be at least 1 and at most {}",
                 parameters.where("original_max_position_embeddings"), kMaxSize);
    scaling.original_max_position_embeddings = *length;
  }
  model.rope_scaling = scaling;
}

void resolve_rotary(const Parameters& parameters, ModelConfig& model) {
  model.rotary_base = in_range(parameters, "rotary_base", 1.0, 1e18);
  model.rotary_percent = in_range(parameters, "rotary_percent", 0.0, 1.0);
  const auto rotated =
      static_cast<int64_t>(static_cast<double>(model.kv_channels) * model.rotary_percent);
  if (rotated < 2 || rotated % 2 != 0)
    raise_rule("rotary.even",
               "config: {}: rotates {} of the {} components of a head, and rotary pairs need an "
               "even number of at least 2 (without any, the model knows no positions); use another "
               "head size or rotary_percent",
               parameters.where("rotary_percent"), rotated, model.kv_channels);
  model.rotary_interleaved = parameters.boolean("rotary_interleaved");
  if (!parameters.is_null("rotary_seq_len_interpolation_factor"))
    model.rotary_interpolation =
        in_range(parameters, "rotary_seq_len_interpolation_factor", 0.0, 1e9);
  resolve_rope_scaling(parameters, model);
}

}  // namespace

void resolve_block(Parameters& parameters, ModelConfig& model) {
  resolve_norms(parameters, model);
  model.activation = resolve_activation(parameters);
  model.linear_bias = parameters.boolean("add_bias_linear");
  model.qkv_bias = model.linear_bias || parameters.boolean("add_qkv_bias");
  resolve_dropout(parameters, model);
  model.positions = position_kind(parameters);
  if (model.positions == PositionKind::kRotary) resolve_rotary(parameters, model);
}

}  // namespace sevenfold::config

#include <algorithm>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr int64_t kByteVocabulary = 257;     // ids 0-255 and the end of a document
constexpr int64_t kMockVocabulary = 131072;  // what Primus sets with mock_data

int64_t positive(const Parameters& parameters, const char* key) {
  const int64_t value = parameters.integer(key);
  if (value < 1 || value > kMaxSize)
    raise_rule("model.positive", "config: {}: must be at least 1 and at most {}",
               parameters.where(key), kMaxSize);
  return value;
}

int64_t positive_or(const Parameters& parameters, const char* key, int64_t if_null) {
  return parameters.is_null(key) ? if_null : positive(parameters, key);
}

double in_range(const Parameters& parameters, const char* key, double above, double at_most) {
  const double value = parameters.number(key);
  if (!(value > above) || value > at_most)
    raise_rule("model.range", "config: {}: must be above {} and at most {}", parameters.where(key),
               above, at_most);
  return value;
}

// A key that has one supported value.
void only(Parameters& parameters, const char* key, const std::string& supported) {
  const std::string value = brief(parameters.at(key));
  if (value != supported)
    parameters.unsupported(key, fmt::format("config: {} is not supported yet; use {}={}",
                                            parameters.where(key), key, supported));
}

void check_block_kind(Parameters& parameters) {
  only(parameters, "normalization", "RMSNorm");
  only(parameters, "position_embedding_type", "rope");
  only(parameters, "swiglu", "true");
  for (const char* key : {"add_bias_linear", "add_qkv_bias", "qk_layernorm"})
    if (parameters.boolean(key)) only(parameters, key, "false");
  for (const char* key : {"hidden_dropout", "attention_dropout"}) {
    const double rate = parameters.number(key);
    if (rate < 0.0 || rate >= 1.0)
      raise_rule("model.range", "config: {}: a dropout rate is at least 0 and below 1",
                 parameters.where(key));
    if (rate != 0.0)
      parameters.unsupported(key,
                             fmt::format("config: {}: dropout is not supported yet; use {}=0.0",
                                         parameters.where(key), key));
  }
}

void resolve_heads(Parameters& parameters, ModelConfig& model) {
  model.num_attention_heads = positive(parameters, "num_attention_heads");
  if (parameters.is_null("kv_channels") && model.hidden_size % model.num_attention_heads != 0)
    raise_rule("heads.hidden",
               "config: {} does not divide hidden_size={}; use {}, or set kv_channels",
               parameters.where("num_attention_heads"), model.hidden_size,
               divisor_list(model.hidden_size));
  model.kv_channels =
      positive_or(parameters, "kv_channels", model.hidden_size / model.num_attention_heads);
  model.num_query_groups = model.num_attention_heads;
  if (parameters.boolean("group_query_attention")) {
    model.num_query_groups = positive_or(parameters, "num_query_groups", model.num_attention_heads);
    if (model.num_attention_heads % model.num_query_groups != 0)
      raise_rule("groups.heads", "config: {} does not divide num_attention_heads={}; use {}",
                 parameters.where("num_query_groups"), model.num_attention_heads,
                 divisor_list(model.num_attention_heads));
  } else if (parameters.optional_integer("num_query_groups").value_or(model.num_attention_heads) !=
             model.num_attention_heads) {
    parameters.notice(fmt::format(
        "{}: ignored because group_query_attention is false; every head has its own keys and "
        "values",
        parameters.where("num_query_groups")));
  }
}

void check_head_split(const Parameters& parameters, const ModelConfig& model, int64_t tp) {
  if (model.num_attention_heads % tp != 0)
    raise_rule("heads.divisible", "config: {} does not divide num_attention_heads={}; use {}",
               parameters.where("tensor_model_parallel_size"), model.num_attention_heads,
               divisor_list(model.num_attention_heads));
  if (model.num_query_groups % tp != 0 && tp % model.num_query_groups != 0)
    raise_rule("groups.divisible",
               "config: {} is neither a divisor nor a multiple of num_query_groups={}; use {}",
               parameters.where("tensor_model_parallel_size"), model.num_query_groups,
               divisor_list(model.num_query_groups));
}

int64_t resolve_ffn(const Parameters& parameters, int64_t hidden_size) {
  if (!parameters.is_null("ffn_hidden_size")) return positive(parameters, "ffn_hidden_size");
  // Two thirds of four times the width, down to a multiple of 64, so that a gated MLP has as many
  // weights.
  const int64_t size =
      parameters.boolean("swiglu") ? hidden_size * 8 / (3 * 64) * 64 : 4 * hidden_size;
  if (size < 1)
    raise_rule("model.positive",
               "config: {}: hidden_size={} is too small for the rule floor(8h/3/64)*64; set "
               "ffn_hidden_size",
               parameters.where("ffn_hidden_size"), hidden_size);
  return size;
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

void resolve_rotary(Parameters& parameters, ModelConfig& model) {
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
}

void resolve_lengths(Parameters& parameters, ModelConfig& model, int64_t cp) {
  model.seq_length = positive(parameters, "seq_length");
  if (parameters.is_null("max_position_embeddings"))
    raise_rule("sequence.positions",
               "config: {}: needs a value of at least seq_length={}; set max_position_embeddings",
               parameters.where("max_position_embeddings"), model.seq_length);
  model.max_position_embeddings = positive(parameters, "max_position_embeddings");
  if (model.seq_length > model.max_position_embeddings)
    raise_rule("sequence.positions",
               "config: {} is above max_position_embeddings={}; shorten it or raise "
               "max_position_embeddings",
               parameters.where("seq_length"), model.max_position_embeddings);
  if (cp > 1 && model.seq_length % (2 * cp) != 0)
    raise_rule("sequence.context",
               "config: {} is not a multiple of 2 x context_parallel_size={} (each rank takes a "
               "head and a tail piece); "
               "use seq_length={}",
               parameters.where("seq_length"), cp, nearest_multiples(model.seq_length, 2 * cp));
}

int64_t resolve_vocabulary(Parameters& parameters, const SevenfoldBlock& block) {
  positive(parameters, "make_vocab_size_divisible_by");
  if (!parameters.is_null("vocab_size")) return positive(parameters, "vocab_size");
  if (block.prepare && block.prepare->tokenizer == "byte") return kByteVocabulary;
  if (!parameters.boolean("mock_data"))
    parameters.unsupported(
        "vocab_size",
        fmt::format("config: {}: reading the vocabulary size from the tokenizer is not supported "
                    "yet; set vocab_size",
                    parameters.where("vocab_size")));
  return kMockVocabulary;
}

}  // namespace

ModelConfig resolve_model(Parameters& parameters, const MeshShape& mesh,
                          const SevenfoldBlock& block) {
  ModelConfig model;
  check_block_kind(parameters);
  model.num_layers = positive(parameters, "num_layers");
  model.hidden_size = positive(parameters, "hidden_size");
  model.ffn_hidden_size = resolve_ffn(parameters, model.hidden_size);
  resolve_heads(parameters, model);
  check_head_split(parameters, model, mesh.tp);
  model.vocab_size = resolve_vocabulary(parameters, block);
  resolve_lengths(parameters, model, mesh.cp);
  model.norm_epsilon = resolve_norm_epsilon(parameters);
  resolve_rotary(parameters, model);
  model.init_method_std = in_range(parameters, "init_method_std", 0.0, 100.0);
  model.tied_embeddings = !parameters.boolean("untie_embeddings_and_output_weights");
  return model;
}

// In floating point: the products of sizes that are each in range need not fit in 64 bits.
void check_elements(const Parameters& parameters, const ModelConfig& model,
                    const BatchConfig& batch) {
  const auto of = [](int64_t size) { return static_cast<double>(size); };
  const double hidden = of(model.hidden_size);
  const double heads = of(model.num_attention_heads);
  const double query_width = heads * of(model.kv_channels);
  const double layer =
      hidden * (2.0 + 4.0 * query_width + 3.0 * of(model.ffn_hidden_size));  // at most
  const double weights = of(model.num_layers) * layer + hidden * (1.0 + 2.0 * of(model.vocab_size));
  if (weights > of(kMaxElements))
    raise_rule("model.elements",
               "config: {}: with num_layers={}, ffn_hidden_size={}, num_attention_heads={} x "
               "kv_channels={} and vocab_size={} the model has {:.1e} weights (at most {}); use "
               "smaller sizes",
               parameters.where("hidden_size"), model.num_layers, model.ffn_hidden_size,
               model.num_attention_heads, model.kv_channels, model.vocab_size, weights,
               kMaxElements);
  const double widest = std::max({hidden, 2.0 * of(model.ffn_hidden_size), query_width,
                                  of(model.vocab_size), heads * of(model.seq_length)});
  const double elements = of(batch.micro_batch_size) * of(model.seq_length) * widest;
  if (elements > of(kMaxElements))
    raise_rule("model.elements",
               "config: {}: with seq_length={} a micro batch makes a tensor of {:.1e} elements (at "
               "most {}); use a smaller micro batch, sequence or model",
               parameters.where("micro_batch_size"), model.seq_length, elements, kMaxElements);
}

}  // namespace sevenfold::config

#include <algorithm>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

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

// As Megatron pads it, so that every tensor-parallel rank holds as many whole multiples.
int64_t padded_vocabulary(const Parameters& parameters, int64_t vocab_size, int64_t tp) {
  const int64_t unit = positive(parameters, "make_vocab_size_divisible_by") * tp;
  return (vocab_size + unit - 1) / unit * unit;
}

}  // namespace

ModelConfig resolve_model(Parameters& parameters, const MeshShape& mesh, int64_t vocab_size) {
  ModelConfig model;
  model.num_layers = positive(parameters, "num_layers");
  model.hidden_size = positive(parameters, "hidden_size");
  model.ffn_hidden_size = resolve_ffn(parameters, model.hidden_size);
  resolve_heads(parameters, model);
  model.vocab_size = vocab_size;
  model.padded_vocab_size = padded_vocabulary(parameters, vocab_size, mesh.tp);
  resolve_lengths(parameters, model, mesh.cp);
  resolve_block(parameters, model);
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
  // At most: + 1 for the biases.
  const double layer = (hidden + 1.0) * (6.0 + 4.0 * query_width + 3.0 * of(model.ffn_hidden_size));
  const double tables = 2.0 * of(model.padded_vocab_size) + of(model.max_position_embeddings);
  const double weights = of(model.num_layers) * layer + hidden * (2.0 + tables);
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

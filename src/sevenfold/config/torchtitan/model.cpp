#include "sevenfold/config/rules/choices.h"
#include "sevenfold/config/torchtitan/flavors.h"
#include "sevenfold/config/torchtitan/parts.h"

namespace sevenfold::config {
namespace {

constexpr const char* kFlavor = "model.flavor";
constexpr std::string_view kPrefix = "model.";
// Keys below model that are no part of a shape.
constexpr std::string_view kPlain =
    "name, flavor, converters, hf_assets_path, tokenizer_path or print_after_conversion";

const Family& family_of(const Parameters& own) {
  const Family* family = find_family(own.string("model.name"));
  if (family == nullptr)
    raise_rule("model.name", "config: {}: there is no such family of models here; use {}",
               own.where("model.name"), family_names());
  return *family;
}

const Flavor& flavor_of(const Parameters& own, const Family& family) {
  const Flavor* flavor = find_flavor(family.name, own.string(kFlavor));
  if (flavor == nullptr)
    raise_rule("model.flavor", "config: {}: {} has no such flavor; use {}", own.where(kFlavor),
               family.name, flavor_names(family.name));
  return *flavor;
}

// TorchTitan takes any key below model for a field of the family's shape.
void check_fields(const Parameters& own, const Family& family) {
  for (const auto& [name, value] : own.values().map) {
    if (!name.starts_with(kPrefix) || value.is_null()) continue;
    const std::string_view field = std::string_view(name).substr(kPrefix.size());
    if (value.origin.kind == OriginKind::kDefault || is_choice(kPlain, field) ||
        is_choice(family.fields, field))
      continue;
    raise_rule("model.field", "config: {}: the shape of {} has no such field; use {}",
               own.where(name), family.name, family.fields);
  }
}

int64_t positive(const Parameters& own, const char* key, int64_t value) {
  if (value < 1 || value > kMaxSize)
    raise_rule("model.positive", "config: {}: must be at least 1 and at most {}", own.where(key),
               kMaxSize);
  return value;
}

// A size from the key that overrides the flavor's, or from the flavor.
class Shape {
 public:
  Shape(Draft& draft, const Flavor& flavor) : draft_(draft), flavor_(flavor) {}

  int64_t size(const char* own_key, int64_t of_flavor) const {
    const auto value = draft_.own.optional_integer(own_key);
    return value ? positive(draft_.own, own_key, *value) : of_flavor;
  }
  double number(const char* own_key, double of_flavor) const {
    return draft_.own.optional_number(own_key).value_or(of_flavor);
  }
  bool flag(const char* own_key, bool of_flavor) const {
    return draft_.own.is_null(own_key) ? of_flavor : draft_.own.boolean(own_key);
  }
  // The key that a value comes from.
  const char* source(const char* own_key) const {
    return draft_.own.is_null(own_key) ? kFlavor : own_key;
  }
  template <typename T>
  void write(const char* key, T value, const char* own_key) const {
    draft_.set(key, Value::of(value), source(own_key));
  }
  const Flavor& flavor() const { return flavor_; }

 private:
  Draft& draft_;
  const Flavor& flavor_;
};

void translate_heads(Draft& draft, const Shape& shape, int64_t dim) {
  const Flavor& flavor = shape.flavor();
  const int64_t heads = shape.size("model.n_heads", flavor.heads);
  // Llama's default: as many as heads.
  const bool follows = flavor.kv_heads == flavor.heads;
  const int64_t kv_heads = shape.size("model.n_kv_heads", follows ? heads : flavor.kv_heads);
  shape.write("num_attention_heads", heads, "model.n_heads");
  shape.write("num_query_groups", kv_heads, "model.n_kv_heads");
  draft.set("group_query_attention", Value::of(true), kFlavor);
  if (flavor.head_dim > 0) {
    shape.write("kv_channels", shape.size("model.head_dim", flavor.head_dim), "model.head_dim");
    return;
  }
  if (dim % heads != 0)
    raise_rule("heads.hidden", "config: {} does not divide model.dim={}; use {}",
               draft.own.where(shape.source("model.n_heads")), dim, divisor_list(dim));
}

// Tensor parallelism cuts the MLP, whose width Llama derives.
void check_derived_width(const Draft& draft, int64_t ffn) {
  const char* key = "parallelism.tensor_parallel_degree";
  const int64_t tp = draft.own.integer(key);
  if (tp < 1 || ffn % tp == 0) return;
  raise_rule("ffn.divisible",
             "config: {} does not divide the MLP's width {}, which follows from model.dim; use {}, "
             "or set model.multiple_of to a multiple of the degree",
             draft.own.where(key), ffn, divisor_list(ffn));
}

void translate_ffn(Draft& draft, const Shape& shape, int64_t dim) {
  const Flavor& flavor = shape.flavor();
  if (flavor.ffn > 0) {
    const char* key = flavor.family == "qwen3" ? "model.hidden_dim" : "model.inter_dim";
    draft.to.names.set("ffn_hidden_size", key);
    return shape.write("ffn_hidden_size", shape.size(key, flavor.ffn), key);
  }
  const char* factor = "model.ffn_dim_multiplier";
  const double multiplier = shape.number(factor, flavor.ffn_multiplier);
  const int64_t unit = shape.size("model.multiple_of", flavor.multiple_of);
  const bool is_given = !draft.own.is_null(factor);
  if (is_given && (!(multiplier > 0.0) || multiplier > 1024.0))
    raise_rule("model.range", "config: {}: must be above 0 and at most 1024; 1.3 is usual",
               draft.own.where(factor));
  const int64_t ffn = llama_ffn(dim, multiplier, unit);
  if (ffn == 0)
    raise_rule("model.range", "config: {}: of model.dim={} it leaves no MLP; 1.3 is usual",
               draft.own.where(factor), dim);
  check_derived_width(draft, ffn);
  shape.write("ffn_hidden_size", positive(draft.own, "model.dim", ffn), "model.dim");
}

// A 0 for every layer without experts, which come first, and a 1 for the others.
Value layer_pattern(int64_t dense_layers, int64_t layers) {
  Value pattern;
  pattern.kind = ValueKind::kList;
  for (int64_t layer = 0; layer < layers; ++layer)
    pattern.list.push_back(Value::of(static_cast<int64_t>(layer < dense_layers ? 0 : 1)));
  return pattern;
}

void translate_routing(Draft& draft, const Experts& experts) {
  const auto set = [&](const char* key, auto value) { draft.set(key, Value::of(value), kFlavor); };
  set("num_experts", experts.num);
  set("moe_router_topk", experts.top_k);
  set("moe_router_score_function", std::string(experts.score));
  set("moe_router_pre_softmax", true);
  set("moe_router_topk_scaling_factor", experts.scale);
  set("moe_router_load_balancing_type", std::string("none"));
  if (experts.groups == 0) return;
  set("moe_router_num_groups", experts.groups);
  set("moe_router_group_topk", experts.chosen_groups);
}

void translate_experts(Draft& draft, const Shape& shape, int64_t layers) {
  const Experts& experts = shape.flavor().experts;
  if (experts.num == 0) return;
  translate_routing(draft, experts);
  const int64_t width = shape.size("model.moe_inter_dim", experts.ffn);
  shape.write("moe_ffn_hidden_size", width, "model.moe_inter_dim");
  if (experts.shared > 0)
    shape.write("moe_shared_expert_intermediate_size", experts.shared * width,
                "model.moe_inter_dim");
  const int64_t dense = draft.own.optional_integer("model.n_dense_layers")
                            .value_or(std::min(experts.dense_layers, layers));
  draft.set("moe_layer_freq", layer_pattern(dense, layers), shape.source("model.n_dense_layers"));
  draft.to.refusals["num_experts"] = fmt::format(
      "config: {}: mixture of experts is not supported yet; use a dense model, for example "
      "model.name=llama3 model.flavor=8B",
      draft.own.where(kFlavor));
}

// deepseek_v3's own attention, unless Primus's kernels replace it.
void translate_attention(Draft& draft, const Family& family) {
  const char* key = "primus_turbo.use_classic_attention";
  if (family.name != "deepseek_v3" || draft.own.boolean(key)) return;
  draft.set("group_query_attention", Value::of(false), kFlavor);
  draft.set("multi_latent_attention", Value::of(true), kFlavor);
  draft.to.refusals["multi_latent_attention"] = fmt::format(
      "config: {}: latent attention is not supported yet; use another family, or {}=true",
      draft.own.where("model.name"), key);
}

void translate_tables(Draft& draft, const Family& family, const Shape& shape) {
  const Flavor& flavor = shape.flavor();
  shape.write("vocab_size", shape.size("model.vocab_size", flavor.vocab), "model.vocab_size");
  shape.write("untie_embeddings_and_output_weights",
              !shape.flag("model.enable_weight_tying", flavor.is_tied),
              "model.enable_weight_tying");
  shape.write("rotary_base", shape.number("model.rope_theta", flavor.rope_theta),
              "model.rope_theta");
  shape.write("layernorm_epsilon", shape.number("model.norm_eps", family.norm_epsilon),
              "model.norm_eps");
  shape.write("qk_layernorm", shape.flag("model.qk_norm", family.qk_norm), "model.qk_norm");
  draft.set("rotary_interleaved", Value::of(family.rotates_neighbours), "model.name");
  draft.set("use_rope_scaling", Value::of(family.scales_rotary), "model.name");
}

// Kernels are our own; a converter to low precision would change the result.
void check_converters(Parameters& own) {
  const char* key = "model.converters";
  const Value& converters = own.at(key);
  std::string refused;
  const auto look_at = [&](const Value& name) {
    if (name.is_null() || name.text.empty() || name.text == "primus_turbo") return;
    refused += (refused.empty() ? "" : ", ") + brief(name);
  };
  if (!converters.is_list()) look_at(converters);
  for (const Value& name : converters.list) look_at(name);
  if (!refused.empty())
    own.unsupported(key, fmt::format("config: {}: {} is not supported yet; use {}=[]",
                                     own.where(key), refused, key));
}

}  // namespace

void translate_model(Draft& draft) {
  const Family& family = family_of(draft.own);
  const Shape shape(draft, flavor_of(draft.own, family));
  check_fields(draft.own, family);
  check_converters(draft.own);
  const int64_t layers = shape.size("model.n_layers", shape.flavor().layers);
  if (layers > kMaxLayers)
    raise_rule("model.positive", "config: {}: must be at least 1 and at most {}",
               draft.own.where("model.n_layers"), kMaxLayers);
  const int64_t dim = shape.size("model.dim", shape.flavor().dim);
  shape.write("num_layers", layers, "model.n_layers");
  shape.write("hidden_size", dim, "model.dim");
  translate_heads(draft, shape, dim);
  translate_ffn(draft, shape, dim);
  translate_experts(draft, shape, layers);
  translate_attention(draft, family);
  translate_tables(draft, family, shape);
  draft.own.notice(fmt::format(
      "{}: start weights are normal with a standard deviation of 0.02, of output projections "
      "0.02/sqrt(2 layers); TorchTitan draws embedding and output with other ones",
      draft.own.where(kFlavor)));
}

}  // namespace sevenfold::config

#include <algorithm>
#include <sstream>

#include "sevenfold/config/rules/choices.h"
#include "sevenfold/config/rules/rules.h"
#include "sevenfold/config/yaml/scalar.h"

namespace sevenfold::config {
namespace {

constexpr const char* kGranularity = "recompute_granularity";
constexpr const char* kMethod = "recompute_method";
constexpr const char* kLayers = "recompute_num_layers";
constexpr const char* kIds = "recompute_layer_ids";
constexpr const char* kShares = "distribute_saved_activations";

// recompute_activations is the older name of selective recomputation.
std::string granularity(const Parameters& parameters) {
  if (parameters.boolean("recompute_activations")) return "selective";
  return parameters.optional_string(kGranularity).value_or("");
}

[[noreturn]] void refuse(const Parameters& parameters, const char* key, const std::string& rule) {
  raise_rule("recompute.keys", "config: {}: {}", parameters.where(key), rule);
}

std::vector<Value> layer_ids(const Value& value) {
  if (value.is_list()) return value.list;
  std::vector<Value> ids;
  std::istringstream text(brief(value));
  for (std::string word; std::getline(text, word, ',');)
    ids.push_back(
        resolve_plain_scalar(word.substr(std::min(word.find_first_not_of(' '), word.size()))));
  return ids;
}

void check_layer_ids(const Parameters& parameters) {
  if (!parameters.is_null(kMethod))
    refuse(parameters, kIds, "named layers need no method; use recompute_method=null");
  const int64_t layers =
      parameters.integer("num_layers") + parameters.optional_integer("mtp_num_layers").value_or(0);
  const std::vector<Value> ids = layer_ids(parameters.at(kIds));
  bool is_valid = !ids.empty();
  for (const Value& id : ids)
    is_valid = is_valid && id.kind == ValueKind::kInt && id.integer >= 0 && id.integer < layers;
  if (is_valid) return;
  refuse(parameters, kIds,
         fmt::format("layers from 0 to {} are needed, at least one; use for example \"0,1\"",
                     layers - 1));
}

void check_full(const Parameters& parameters) {
  if (!parameters.is_null(kIds)) return check_layer_ids(parameters);
  if (parameters.is_null(kMethod))
    refuse(parameters, kGranularity,
           "recomputing whole layers needs recompute_method=uniform or block; set it");
  const auto layers = parameters.optional_integer(kLayers);
  if (!layers || *layers < 0)
    refuse(parameters, kLayers,
           "recomputing whole layers needs their number, 0 for none; set recompute_num_layers");
}

void check_selective(const Parameters& parameters) {
  if (!parameters.is_null(kMethod))
    refuse(parameters, kMethod, "belongs to recompute_granularity=full; use recompute_method=null");
  if (!parameters.is_null(kLayers))
    refuse(parameters, kLayers,
           "belongs to recompute_granularity=full; use recompute_num_layers=null");
}

void check_modules(const Parameters& parameters) {
  constexpr std::string_view kNames =
      "core_attn, moe_act, layernorm, mla_up_proj, mlp, moe or shared_experts";
  for (const Value& item : parameters.at("recompute_modules").list)
    if (!is_choice(kNames, item.text))
      raise_rule("recompute.modules", "config: {}: `{}` is not among the choices; use {}",
                 parameters.where("recompute_modules"), brief(item), kNames);
}

std::vector<int64_t> ascending(const std::vector<Value>& ids) {
  std::vector<int64_t> numbers;
  for (const Value& id : ids) numbers.push_back(id.integer);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// Shares of inputs: only where ranks would otherwise keep the same one.
void check_shares(const Parameters& parameters) {
  if (!parameters.boolean(kShares)) return;
  if (granularity(parameters) != "full" || parameters.is_null(kMethod))
    refuse(parameters, kShares,
           "shares out the inputs of recomputed layers; use recompute_granularity=full with "
           "recompute_method=uniform or block, or distribute_saved_activations=false");
  const int64_t ranks = parameters.integer("tensor_model_parallel_size");
  if (ranks < 2)
    refuse(parameters, kShares,
           fmt::format("needs ranks that hold the same input, and tensor_model_parallel_size is "
                       "{}; use distribute_saved_activations=false",
                       ranks));
  if (parameters.boolean("sequence_parallel"))
    refuse(parameters, kShares,
           "sequence_parallel=true shares the inputs out already; use "
           "distribute_saved_activations=false");
}

RecomputeConfig whole_layers(const Parameters& parameters) {
  if (!parameters.is_null(kIds))
    return {.layers = RecomputedLayers::kNamed,
            .layer_ids = ascending(layer_ids(parameters.at(kIds)))};
  const int64_t num_layers = parameters.integer(kLayers);
  if (num_layers == 0) return {};
  const bool is_uniform = parameters.string(kMethod) == "uniform";
  return {.layers = is_uniform ? RecomputedLayers::kUniform : RecomputedLayers::kBlock,
          .num_layers = num_layers,
          .shares_inputs = parameters.boolean(kShares)};
}

RecomputeConfig parts_of_layers(Parameters& parameters) {
  const Value& modules = parameters.at("recompute_modules");
  if (modules.is_null()) return {.core_attention = true};
  RecomputeConfig config;
  for (const Value& module : modules.list) {
    if (module.text == "core_attn")
      config.core_attention = true;
    else if (module.text == "layernorm")
      config.norms = true;
    else if (module.text == "moe_act")
      config.activation = true;
    else if (module.text == "mlp")
      config.feed_forward = true;
    else
      parameters.notice(fmt::format("{}: {} has no effect: the model has no such part",
                                    parameters.where("recompute_modules"), module.text));
  }
  return config;
}

}  // namespace

void check_recomputation(const Parameters& parameters) {
  const std::string kind = granularity(parameters);
  if (kind == "full") check_full(parameters);
  if (kind == "selective") check_selective(parameters);
  if (kind != "full" && !parameters.is_null(kIds))
    refuse(parameters, kIds, "needs recompute_granularity=full; set that, or use null");
  check_modules(parameters);
  check_shares(parameters);
}

RecomputeConfig resolve_recomputation(Parameters& parameters) {
  const std::string kind = granularity(parameters);
  if (kind == "full") return whole_layers(parameters);
  if (kind == "selective") return parts_of_layers(parameters);
  return {};
}

}  // namespace sevenfold::config

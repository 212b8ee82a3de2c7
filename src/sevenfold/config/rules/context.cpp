#include <algorithm>

#include "sevenfold/config/rules/choices.h"
#include "sevenfold/config/rules/rules.h"

// How keys and values travel between the ranks that share a sequence; multi-head latent attention.

namespace sevenfold::config {
namespace {

constexpr const char* kTransport = "cp_comm_type";
constexpr const char* kLevels = "hierarchical_context_parallel_sizes";

std::vector<std::string> transports(const Parameters& parameters) {
  const Value& value = parameters.at(kTransport);
  std::vector<std::string> names;
  if (value.is_list())
    for (const Value& item : value.list) names.push_back(item.text);
  else if (!value.is_null())
    names.push_back(value.text);
  return names;
}

void check_transport(const Parameters& parameters, const std::vector<std::string>& names) {
  constexpr std::string_view kNames = "p2p, a2a, all_gather, allgather or a2a+p2p";
  for (const std::string& name : names)
    if (!is_choice(kNames, name))
      raise_rule("context.transport", "config: {}: `{}` is not among the choices; use {}",
                 parameters.where(kTransport), name, kNames);
  const int64_t layers = parameters.integer("num_layers");
  const auto given = static_cast<int64_t>(names.size());
  if (given > 1 && given != layers)
    raise_rule("context.transport",
               "config: {}: {} choices for num_layers={} layers; use one for all, or one for each",
               parameters.where(kTransport), given, layers);
}

// Ulysses hands each rank whole heads.
void check_heads(const Parameters& parameters, const MeshShape& mesh) {
  const int64_t ways = mesh.tp * mesh.cp;
  const int64_t heads = parameters.integer("num_attention_heads");
  const int64_t groups = parameters.boolean("group_query_attention")
                             ? parameters.optional_integer("num_query_groups").value_or(heads)
                             : heads;
  for (const auto& [key, size] :
       {std::pair{"num_attention_heads", heads}, std::pair{"num_query_groups", groups}})
    if (size % ways != 0)
      raise_rule("context.heads",
                 "config: {}: a2a hands out whole heads, and {}={} is not a multiple of "
                 "tensor_model_parallel_size {} x context_parallel_size {} = {}; use p2p",
                 parameters.where(kTransport), key, size, mesh.tp, mesh.cp, ways);
}

void check_levels(const Parameters& parameters, int64_t cp, bool is_needed) {
  const Value& levels = parameters.at(kLevels);
  if (levels.is_null()) {
    if (is_needed)
      raise_rule("context.levels",
                 "config: {}: a2a+p2p needs the sizes of both levels; set {} to two numbers whose "
                 "product is context_parallel_size={}",
                 parameters.where(kTransport), kLevels, cp);
    return;
  }
  const auto is_size = [](const Value& level) {
    return level.kind == ValueKind::kInt && level.integer >= 1;
  };
  int64_t product = 0;
  if (levels.list.size() == 2 && is_size(levels.list[0]) && is_size(levels.list[1]) &&
      !__builtin_mul_overflow(levels.list[0].integer, levels.list[1].integer, &product) &&
      product == cp)
    return;
  raise_rule(
      "context.levels",
      "config: {}: two numbers are needed whose product is context_parallel_size={}; use for "
      "example [{}, 1]",
      parameters.where(kLevels), cp, cp);
}

void check_latent_attention(const Parameters& parameters) {
  if (!parameters.boolean("multi_latent_attention")) return;
  for (const char* key : {"group_query_attention", "rotary_interleaved"})
    if (parameters.boolean(key))
      raise_rule(
          "latent.exclusive",
          "config: {}: multi_latent_attention=true is set too, and excludes it; use {}=false",
          parameters.where(key), key);
}

void check_prediction(const Parameters& parameters) {
  if (parameters.optional_integer("mtp_num_layers").value_or(0) == 0) return;
  if (parameters.string("position_embedding_type") == "learned_absolute")
    raise_rule("prediction.positions",
               "config: {}: multi-token prediction needs position_embedding_type=rope or none; use "
               "one of them",
               parameters.where("mtp_num_layers"));
}

}  // namespace

void check_context(const Parameters& parameters, const MeshShape& mesh) {
  const std::vector<std::string> names = transports(parameters);
  check_transport(parameters, names);
  check_latent_attention(parameters);
  check_prediction(parameters);
  if (mesh.cp == 1) return;
  const auto uses = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (uses("a2a")) check_heads(parameters, mesh);
  check_levels(parameters, mesh.cp, uses("a2a+p2p"));
}

}  // namespace sevenfold::config

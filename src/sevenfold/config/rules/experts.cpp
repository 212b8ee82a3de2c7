#include <algorithm>

#include "sevenfold/config/rules/choices.h"
#include "sevenfold/config/rules/rules.h"

// Rules of mixture-of-experts models.

namespace sevenfold::config {
namespace {

void check_pattern(const Parameters& parameters) {
  const char* key = "moe_layer_freq";
  const Value& pattern = parameters.at(key);
  const int64_t layers = parameters.integer("num_layers");
  if (pattern.is_null() || (pattern.kind == ValueKind::kInt && pattern.integer >= 1)) return;
  const auto is_flag = [](const Value& item) {
    return item.kind == ValueKind::kInt && (item.integer == 0 || item.integer == 1);
  };
  if (pattern.is_list() && static_cast<int64_t>(pattern.list.size()) == layers &&
      std::all_of(pattern.list.begin(), pattern.list.end(), is_flag))
    return;
  raise_rule("moe.layers",
             "config: {}: a whole number of at least 1, or a 0 or 1 for each of the num_layers={} "
             "layers ({} given) is needed; use for example \"([0]*1+[1]*{})\"",
             parameters.where(key), layers, pattern.list.size(), std::max<int64_t>(1, layers - 1));
}

void check_widths(const Parameters& parameters) {
  for (const char* key : {"moe_ffn_hidden_size", "moe_shared_expert_intermediate_size"}) {
    const auto width = parameters.optional_integer(key);
    if (!width || (*width >= 1 && *width <= kMaxSize)) continue;
    raise_rule("moe.width", "config: {}: must be at least 1 and at most {}; use null for none",
               parameters.where(key), kMaxSize);
  }
}

bool balances_by(const Parameters& parameters, std::string_view kind) {
  const Value& kinds = parameters.at("moe_router_load_balancing_type");
  if (!kinds.is_list()) return kinds.text == kind;
  return std::any_of(kinds.list.begin(), kinds.list.end(),
                     [&](const Value& item) { return item.text == kind; });
}

void check_topk(const Parameters& parameters, int64_t num_experts) {
  const char* key = "moe_router_topk";
  const int64_t topk = parameters.integer(key);
  if (topk < 1 || topk > num_experts)
    raise_rule("moe.topk",
               "config: {}: a token goes to at least 1 and at most num_experts={}; use {}",
               parameters.where(key), num_experts, std::clamp<int64_t>(topk, 1, num_experts));
  const bool is_softmax = parameters.string("moe_router_score_function") == "softmax";
  if (topk == 1 && is_softmax && !parameters.boolean("moe_router_pre_softmax") &&
      !balances_by(parameters, "sinkhorn"))
    raise_rule("moe.topk",
               "config: {}: softmax over the one chosen expert is always 1, so the router learns "
               "nothing; use moe_router_pre_softmax=true",
               parameters.where(key));
}

void check_groups(const Parameters& parameters, int64_t num_experts) {
  const auto groups = parameters.optional_integer("moe_router_num_groups");
  const auto chosen = parameters.optional_integer("moe_router_group_topk");
  if (chosen && !groups)
    raise_rule("moe.groups",
               "config: {}: there are no groups to choose from; set moe_router_num_groups, or "
               "moe_router_group_topk=null",
               parameters.where("moe_router_group_topk"));
  if (!groups) return;
  if (*groups < 1 || num_experts % *groups != 0)
    raise_rule("moe.groups", "config: {} does not divide num_experts={}; use {}",
               parameters.where("moe_router_num_groups"), num_experts, divisor_list(num_experts));
  if (chosen && (*chosen < 1 || *chosen > *groups))
    raise_rule("moe.groups",
               "config: {}: must be at least 1 and at most moe_router_num_groups={}; use {}",
               parameters.where("moe_router_group_topk"), *groups,
               std::clamp<int64_t>(*chosen, 1, *groups));
}

void check_balancing(const Parameters& parameters) {
  const std::string score = parameters.string("moe_router_score_function");
  if (parameters.boolean("moe_router_enable_expert_bias") && score == "softmax")
    raise_rule("moe.bias",
               "config: {}: the selection bias belongs to moe_router_score_function=sigmoid; use "
               "that, or moe_router_enable_expert_bias=false",
               parameters.where("moe_router_enable_expert_bias"));
  const Value& kinds = parameters.at("moe_router_load_balancing_type");
  const Value& coefficients = parameters.at("moe_aux_loss_coeff");
  const size_t num_coefficients = coefficients.is_list() ? coefficients.list.size() : 0;
  if (kinds.is_list() && kinds.list.size() != num_coefficients)
    raise_rule(
        "moe.balancing",
        "config: {}: {} kinds need as many moe_aux_loss_coeff, and {} are given; use lists of "
        "equal length",
        parameters.where("moe_router_load_balancing_type"), kinds.list.size(), num_coefficients);
}

void check_capacity(const Parameters& parameters) {
  const auto factor = parameters.optional_number("moe_expert_capacity_factor");
  const bool is_limited = factor && *factor >= 0.0;
  if (parameters.boolean("moe_pad_expert_input_to_capacity") && !is_limited)
    raise_rule("moe.capacity",
               "config: {}: there is no capacity to pad to; set moe_expert_capacity_factor",
               parameters.where("moe_pad_expert_input_to_capacity"));
  if (is_limited && balances_by(parameters, "sinkhorn"))
    raise_rule("moe.capacity",
               "config: {}: sinkhorn balances without a capacity; use "
               "moe_expert_capacity_factor=null",
               parameters.where("moe_expert_capacity_factor"));
}

void check_shared_overlap(const Parameters& parameters) {
  if (!parameters.boolean("moe_shared_expert_overlap") ||
      parameters.is_null("moe_shared_expert_intermediate_size"))
    return;
  const std::string dispatcher = parameters.string("moe_token_dispatcher_type");
  if (dispatcher == "alltoall" || dispatcher == "flex") return;
  raise_rule(
      "moe.overlap",
      "config: {}: the shared expert overlaps with the dispatch of alltoall or flex, not {}; "
      "use moe_token_dispatcher_type=alltoall",
      parameters.where("moe_shared_expert_overlap"), dispatcher);
}

}  // namespace

void check_experts(Parameters& parameters, const MeshShape& mesh) {
  const auto num_experts = parameters.optional_integer("num_experts");
  if (!num_experts) return;
  if (mesh.tp > 1 && mesh.ep > 1 && !parameters.boolean("sequence_parallel"))
    parameters.notice(fmt::format(
        "{}: with tensor_model_parallel_size={} and expert_model_parallel_size={} every "
        "tensor-parallel rank routes all tokens; use sequence_parallel=true",
        parameters.where("sequence_parallel"), mesh.tp, mesh.ep));
  if (*num_experts < 1 || *num_experts > kMaxSize)
    raise_rule("experts.range", "config: {}: must be at least 1 and at most {}; use null for none",
               parameters.where("num_experts"), kMaxSize);
  if (parameters.boolean("add_bias_linear") && mesh.etp > 1)
    raise_rule("moe.linear_bias",
               "config: {}: experts cut over expert_tensor_parallel_size={} have no biases; use "
               "add_bias_linear=false or expert_tensor_parallel_size=1",
               parameters.where("add_bias_linear"), mesh.etp);
  check_pattern(parameters);
  check_widths(parameters);
  check_topk(parameters, *num_experts);
  check_groups(parameters, *num_experts);
  check_balancing(parameters);
  check_capacity(parameters);
  check_shared_overlap(parameters);
}

}  // namespace sevenfold::config

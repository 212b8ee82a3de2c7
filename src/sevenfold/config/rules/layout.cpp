#include <algorithm>
#include <numeric>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr const char* kTp = "tensor_model_parallel_size";
constexpr const char* kPp = "pipeline_model_parallel_size";
constexpr const char* kCp = "context_parallel_size";
constexpr const char* kEp = "expert_model_parallel_size";
constexpr const char* kEtp = "expert_tensor_parallel_size";

int64_t degree(const Parameters& parameters, const char* key, int64_t if_null) {
  const int64_t value = parameters.optional_integer(key).value_or(if_null);
  constexpr int64_t kMaxDegree = 1024;  // keeps products of degrees far from overflow
  if (value < 1 || value > kMaxDegree)
    raise_rule("degree.positive",
               "config: {}: a degree is at least 1 and at most {}; 1 switches the axis off",
               parameters.where(key), kMaxDegree);
  return value;
}

// The degree that a message about a product should point at: the first that is not 1.
std::string blame(const Parameters& parameters, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto value = parameters.optional_integer(key);
    if (value && *value != 1) return parameters.where(key);
  }
  return parameters.where(*keys.begin());
}

void check_world(const Parameters& parameters, const MeshShape& mesh, const WorldRequest& world) {
  const int64_t dense = mesh.tp * mesh.pp * mesh.cp;
  const int64_t expert = mesh.etp * mesh.ep * mesh.pp;
  const int64_t unit = std::lcm(dense, expert);
  if (world.ranks < 1 || world.ranks > kMaxWorldSize)
    raise_rule("world.positive",
               "config: {}: the number of ranks is at least 1 and at most {}; use {}", world.where,
               kMaxWorldSize, unit);
  if (world.ranks % dense != 0)
    raise_rule("world.divisible",
               "config: {}: {} ranks ({}) are not a multiple of {} {} x {} {} x {} {} = {}; use {} "
               "ranks, or other "
               "degrees",
               blame(parameters, {kTp, kPp, kCp}), world.ranks, world.where, kTp, mesh.tp, kPp,
               mesh.pp, kCp, mesh.cp, dense, nearest_multiples(world.ranks, unit));
  if (world.ranks % expert != 0)
    raise_rule("world.experts",
               "config: {}: {} ranks ({}) are not a multiple of {} {} x {} {} x {} {} = {}; use {} "
               "ranks, or other "
               "degrees",
               blame(parameters, {kEp, kEtp, kPp}), world.ranks, world.where, kEtp, mesh.etp, kEp,
               mesh.ep, kPp, mesh.pp, expert, nearest_multiples(world.ranks, unit));
}

void check_expert_degree(const Parameters& parameters, const MeshShape& mesh) {
  if (mesh.ep == 1) return;
  const int64_t num_experts = parameters.optional_integer("num_experts").value_or(0);
  if (num_experts == 0)
    raise_rule("experts.needed",
               "config: {}: the model has no experts to cut; set num_experts or use {}=1",
               parameters.where(kEp), kEp);
  if (num_experts < 1 || num_experts > kMaxSize)
    raise_rule("experts.range", "config: {}: must be at least 1 and at most {}",
               parameters.where("num_experts"), kMaxSize);
  if (num_experts % mesh.ep != 0)
    raise_rule("experts.divisible", "config: {} does not divide num_experts={}; use {}",
               parameters.where(kEp), num_experts, divisor_list(num_experts));
}

void note_missing_axes(Parameters& parameters, const MeshShape& mesh) {
  const auto refuse = [&](const char* key, int64_t size, const char* what) {
    if (size > 1)
      parameters.unsupported(key, fmt::format("config: {}: {} is not supported yet; use {}=1",
                                              parameters.where(key), what, key));
  };
  refuse(kCp, mesh.cp, "context parallelism");
  refuse(kEp, mesh.ep, "expert parallelism");
  if (mesh.etp != mesh.tp) refuse(kEtp, mesh.etp, "expert tensor parallelism");
}

void note_data_parallel_keys(Parameters& parameters) {
  const char* key = "overlap_grad_reduce";
  if (parameters.boolean(key))
    parameters.notice(parameters.where(key) +
                      ": accepted; until it acts gradients are always reduced while backward runs");
}

}  // namespace

std::optional<WorldRequest> requested_world(const SevenfoldBlock& block,
                                            const LoadOptions& options) {
  if (options.ranks)
    return WorldRequest{*options.ranks, fmt::format("{} {}", options.ranks_option, *options.ranks)};
  if (block.ranks) return WorldRequest{*block.ranks, block.where("ranks")};
  return std::nullopt;
}

MeshShape resolve_layout(Parameters& parameters, const SevenfoldBlock& block,
                         const LoadOptions& options) {
  MeshShape mesh;
  mesh.tp = degree(parameters, kTp, 1);
  mesh.pp = degree(parameters, kPp, 1);
  mesh.cp = degree(parameters, kCp, 1);
  mesh.ep = degree(parameters, kEp, 1);
  mesh.etp = degree(parameters, kEtp, mesh.tp);
  mesh.tp_pp_dp_mapping = parameters.boolean("use_tp_pp_dp_mapping");
  check_expert_degree(parameters, mesh);
  const int64_t dense = mesh.tp * mesh.pp * mesh.cp;
  const WorldRequest smallest{std::lcm(dense, mesh.etp * mesh.ep * mesh.pp),
                              "the smallest that fits"};
  const WorldRequest world = requested_world(block, options).value_or(smallest);
  check_world(parameters, mesh, world);
  mesh.dp = world.ranks / dense;
  if (mesh.tp_pp_dp_mapping && mesh.pp > 1 && mesh.dp != mesh.edp())
    raise_rule("world.mapping",
               "config: {}: with pipeline stages this order needs equal data parallelism, and it "
               "is {} for dense and {} "
               "for expert weights; use use_tp_pp_dp_mapping=false",
               parameters.where("use_tp_pp_dp_mapping"), mesh.dp, mesh.edp());
  note_missing_axes(parameters, mesh);
  note_data_parallel_keys(parameters);
  return mesh;
}

}  // namespace sevenfold::config

#include <algorithm>

#include "sevenfold/config/rules/rules.h"

// How weights, gradients and optimizer state are cut over data-parallel ranks.

namespace sevenfold::config {
namespace {

constexpr const char* kStrategy = "data_parallel_sharding_strategy";

std::string strategy_of(const Parameters& parameters) {
  return parameters.optional_string(kStrategy).value_or("no_shard");
}

bool is_sharded(const Parameters& parameters) {
  return parameters.boolean("use_megatron_fsdp") || parameters.boolean("use_custom_fsdp") ||
         strategy_of(parameters) != "no_shard";
}

void check_overlap(const Parameters& parameters) {
  const char* key = "overlap_param_gather";
  if (!parameters.boolean(key)) return;
  const bool gathers = parameters.boolean("use_distributed_optimizer") || is_sharded(parameters) ||
                       parameters.boolean("use_torch_fsdp2") ||
                       parameters.string("optimizer") == "dist_muon";
  if (!gathers)
    raise_rule(
        "overlap.gather",
        "config: {}: with use_distributed_optimizer=false there are no weights to gather; use "
        "{}=false",
        parameters.where(key), key);
  if (!parameters.boolean("overlap_grad_reduce"))
    raise_rule("overlap.gather",
               "config: {}: weights are gathered early only where gradients are reduced early; use "
               "overlap_grad_reduce=true or {}=false",
               parameters.where(key), key);
}

void check_sharded_optimizer(const Parameters& parameters) {
  const std::string optimizer = parameters.string("optimizer");
  if (optimizer == "adam" || optimizer == "sgd") return;
  for (const char* key : {"use_torch_fsdp2", "use_megatron_fsdp"})
    if (parameters.boolean(key))
      raise_rule(
          "sharding.optimizer",
          "config: {}: it needs whole matrices, and {}=true cuts them; use optimizer=adam or "
          "sgd, or {}=false",
          parameters.where("optimizer"), key, key);
}

void check_sharding(const Parameters& parameters) {
  check_sharded_optimizer(parameters);
  if (!parameters.boolean("use_torch_fsdp2")) return;
  for (const char* key : {"use_megatron_fsdp", "use_custom_fsdp", "use_distributed_optimizer"})
    if (parameters.boolean(key))
      raise_rule("sharding.one",
                 "config: {}: {}=true is set too, and weights are cut one way; use {}=false",
                 parameters.where("use_torch_fsdp2"), key, key);
  if (strategy_of(parameters) != "no_shard")
    raise_rule("sharding.one",
               "config: {}: {} is set too, and weights are cut one way; use {}=no_shard",
               parameters.where("use_torch_fsdp2"), parameters.where(kStrategy), kStrategy);
}

constexpr const char* kInstances = "num_distributed_optimizer_instances";
constexpr const char* kReplicate = "data_parallel_replicate_degree";

int64_t replicas_of(const Parameters& parameters, const char* key) {
  return parameters.optional_integer(key).value_or(1);
}

void check_replicas(const Parameters& parameters, const MeshShape& mesh, ZeroStage stage) {
  const int64_t ranks = mesh.dp * mesh.cp;
  for (const char* key : {kInstances, kReplicate}) {
    const int64_t replicas = replicas_of(parameters, key);
    if (replicas >= 1 && ranks % replicas == 0) continue;
    raise_rule("sharding.replicas",
               "config: {} does not divide data-parallel size {} x context_parallel_size {} = {}; "
               "use {}",
               parameters.where(key), mesh.dp, mesh.cp, ranks, divisor_list(ranks));
  }
  const int64_t instances = replicas_of(parameters, kInstances);
  const int64_t degree = replicas_of(parameters, kReplicate);
  if (degree > 1 && !parameters.boolean("use_torch_fsdp2"))
    raise_rule("sharding.replicas",
               "config: {}: replicas of shards need weights that are cut; use use_torch_fsdp2=true "
               "or data_parallel_replicate_degree=1",
               parameters.where(kReplicate));
  if (instances > 1 && stage == ZeroStage::kNone)
    raise_rule("sharding.replicas",
               "config: {}: replicas of shards need an optimizer state that is cut; use "
               "use_distributed_optimizer=true or {}=1",
               parameters.where(kInstances), kInstances);
  if (instances > 1 && degree > 1 && instances != degree)
    raise_rule("sharding.replicas",
               "config: {} and {} say different numbers of the same sets of shards; use {}={}",
               parameters.where(kInstances), parameters.where(kReplicate), kInstances, degree);
}

constexpr const char* kAware = "use_precision_aware_optimizer";

void check_state_types(const Parameters& parameters) {
  const bool is_aware = parameters.boolean(kAware);
  if (is_aware && parameters.string("optimizer") != "adam")
    raise_rule("optimizer.state",
               "config: {}: belongs to AdamW, and optimizer={}; use optimizer=adam or {}=false",
               parameters.where(kAware), parameters.string("optimizer"), kAware);
  for (const char* key :
       {"main_grads_dtype", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"})
    if (!is_aware && parameters.optional_string(key).value_or("fp32") != "fp32")
      raise_rule("optimizer.state", "config: {}: needs {}=true; use that, or {}=fp32",
                 parameters.where(key), kAware, key);
}

void check_offload(const Parameters& parameters) {
  if (parameters.boolean("optimizer_cpu_offload") && !parameters.boolean(kAware))
    raise_rule("optimizer.offload",
               "config: {}: needs use_precision_aware_optimizer=true; use that, or "
               "optimizer_cpu_offload=false",
               parameters.where("optimizer_cpu_offload"));
}

ZeroStage stage_of(const Parameters& parameters) {
  const std::string strategy = strategy_of(parameters);
  if (strategy == "optim_grads_params" || parameters.boolean("use_torch_fsdp2"))
    return ZeroStage::kParameters;
  if (strategy == "optim_grads") return ZeroStage::kGradients;
  if (strategy == "optim" || parameters.boolean("use_distributed_optimizer"))
    return ZeroStage::kOptimizer;
  return ZeroStage::kNone;
}

}  // namespace

bool resolve_bf16_sums(Parameters& parameters, Precision precision) {
  const char* key = "grad_reduce_in_bf16";
  if (!parameters.boolean(key)) return false;
  if (precision != Precision::kBf16)
    parameters.notice(fmt::format("{}: has no effect in {}: it is of bf16 runs",
                                  parameters.where(key), precision_name(precision)));
  return precision == Precision::kBf16;
}

void resolve_sharding(const Parameters& parameters, ParallelConfig& parallel, MeshShape& mesh) {
  check_overlap(parameters);
  check_sharding(parameters);
  check_state_types(parameters);
  check_offload(parameters);
  parallel.zero = stage_of(parameters);
  check_replicas(parameters, mesh, parallel.zero);
  parallel.overlap_gather = parameters.boolean("overlap_param_gather");
  parallel.reshard_after_forward = parameters.boolean("torch_fsdp2_reshard_after_forward");
  mesh.dp_replicate =
      std::max(replicas_of(parameters, kInstances), replicas_of(parameters, kReplicate));
}

}  // namespace sevenfold::config

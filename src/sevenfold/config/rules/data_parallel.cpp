#include "sevenfold/config/rules/rules.h"

// How weights, gradients and optimizer state are cut over data-parallel ranks.

namespace sevenfold::config {
namespace {

bool is_sharded(const Parameters& parameters) {
  return parameters.boolean("use_megatron_fsdp") || parameters.boolean("use_custom_fsdp");
}

void check_overlap(const Parameters& parameters) {
  const char* key = "overlap_param_gather";
  if (!parameters.boolean(key)) return;
  const bool gathers = parameters.boolean("use_distributed_optimizer") || is_sharded(parameters) ||
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

void check_sharding(const Parameters& parameters) {
  if (!parameters.boolean("use_torch_fsdp2")) return;
  for (const char* key : {"use_megatron_fsdp", "use_custom_fsdp", "use_distributed_optimizer"})
    if (parameters.boolean(key))
      raise_rule("sharding.one",
                 "config: {}: {}=true is set too, and weights are cut one way; use {}=false",
                 parameters.where("use_torch_fsdp2"), key, key);
}

void check_replicas(const Parameters& parameters, const MeshShape& mesh) {
  const int64_t ranks = mesh.dp * mesh.cp;
  for (const char* key :
       {"num_distributed_optimizer_instances", "data_parallel_replicate_degree"}) {
    const int64_t replicas = parameters.optional_integer(key).value_or(1);
    if (replicas >= 1 && ranks % replicas == 0) continue;
    raise_rule("sharding.replicas",
               "config: {} does not divide data-parallel size {} x context_parallel_size {} = {}; "
               "use {}",
               parameters.where(key), mesh.dp, mesh.cp, ranks, divisor_list(ranks));
  }
  if (parameters.optional_integer("data_parallel_replicate_degree").value_or(1) > 1 &&
      !parameters.boolean("use_torch_fsdp2"))
    raise_rule("sharding.replicas",
               "config: {}: replicas of shards need weights that are cut; use use_torch_fsdp2=true "
               "or data_parallel_replicate_degree=1",
               parameters.where("data_parallel_replicate_degree"));
}

void check_optimizer_state(const Parameters& parameters) {
  if (parameters.boolean("optimizer_cpu_offload") &&
      !parameters.boolean("use_precision_aware_optimizer"))
    raise_rule("optimizer.offload",
               "config: {}: needs use_precision_aware_optimizer=true; use that, or "
               "optimizer_cpu_offload=false",
               parameters.where("optimizer_cpu_offload"));
}

}  // namespace

void check_data_parallel(const Parameters& parameters, const MeshShape& mesh) {
  check_overlap(parameters);
  check_sharding(parameters);
  check_replicas(parameters, mesh);
  check_optimizer_state(parameters);
}

}  // namespace sevenfold::config

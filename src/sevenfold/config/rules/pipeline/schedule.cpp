#include <algorithm>

#include "sevenfold/config/rules/rules.h"

// What a pipeline schedule asks of the pieces per rank and of the micro batches.

namespace sevenfold::config {
namespace {

bool offloads(const std::string& algorithm) {
  return algorithm == "zbv-formatted" || algorithm == "v-half" || algorithm == "v-min";
}

bool uses_primus_schedule(const Parameters& parameters, const MeshShape& mesh) {
  return mesh.pp > 1 && parameters.boolean("patch_primus_pipeline") &&
         !parameters.boolean("patch_zero_bubble");
}

void check_offload(const Parameters& parameters, bool can_offload) {
  if (!parameters.boolean("offload") || can_offload) return;
  raise_rule(
      "schedule.offload",
      "config: {}: activations are offloaded only by the schedules zbv-formatted, v-half and "
      "v-min of patch_primus_pipeline; use one of them or offload=false",
      parameters.where("offload"));
}

bool is_above_zero(const Value& value) {
  const bool is_float = value.kind == ValueKind::kFloat && value.number > 0.0;
  return is_float || (value.kind == ValueKind::kInt && value.integer > 0);
}

// A number, or one for each stage.
void check_costs(const Parameters& parameters, int64_t pp) {
  for (const char* key : {"pp_cost_f", "pp_cost_b", "pp_cost_w"}) {
    const Value& cost = parameters.at(key);
    if (cost.is_null() || is_above_zero(cost)) continue;
    const bool fits = cost.is_list() && static_cast<int64_t>(cost.list.size()) == pp;
    if (fits && std::all_of(cost.list.begin(), cost.list.end(), is_above_zero)) continue;
    raise_rule(
        "schedule.cost",
        "config: {}: a cost is a number above 0, or a list of {}=pipeline_model_parallel_size "
        "of them; use null for the usual 1000",
        parameters.where(key), pp);
  }
  const Value& memory = parameters.at("pp_max_mem");
  if (!memory.is_null() && !is_above_zero(memory))
    raise_rule("schedule.cost",
               "config: {}: a memory limit is above 0, in micro batches; use null for no limit",
               parameters.where("pp_max_mem"));
}

void check_pending_backward(const Parameters& parameters) {
  const char* key = "zero_bubble_max_pending_backward";
  const Value& limit = parameters.at(key);
  if (limit.is_null() || limit.text == "auto" ||
      (limit.kind == ValueKind::kInt && limit.integer > 0))
    return;
  raise_rule("schedule.pending",
             "config: {}: a limit is a whole number above 0 of micro batches, or auto; use auto",
             parameters.where(key));
}

void check_group(const Parameters& parameters, int64_t pp, int64_t num_microbatches) {
  const char* key = "microbatch_group_size_per_vp_stage";
  const auto group = parameters.optional_integer(key);
  if (!group) return;
  const bool is_between = pp <= *group && *group <= num_microbatches;
  if (is_between && (num_microbatches % *group == 0 || num_microbatches % *group >= pp)) return;
  raise_rule(
      "schedule.group",
      "config: {}: a group is at least pipeline_model_parallel_size={}, at most the {} micro "
      "batches of a step, and leaves none or at least {} over; use {}=null",
      parameters.where(key), pp, num_microbatches, pp, key);
}

}  // namespace

void check_pipeline_batches(const Parameters& parameters, const MeshShape& mesh,
                            const PipelineConfig& pipeline, const BatchConfig& batch) {
  check_offload(parameters, uses_primus_schedule(parameters, mesh) && offloads(pipeline.algorithm));
  check_costs(parameters, mesh.pp);
  check_pending_backward(parameters);
  if (pipeline.num_chunks > 1) check_group(parameters, mesh.pp, batch.num_microbatches);
}

}  // namespace sevenfold::config

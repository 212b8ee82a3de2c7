#include <algorithm>

#include "sevenfold/config/rules/rules.h"

// What a pipeline schedule asks of the pieces per rank and of the micro batches.

namespace sevenfold::config {
namespace {

constexpr const char* kAlgorithm = "pp_algorithm";
constexpr const char* kChunks = "num_virtual_stages_per_pipeline_rank";

bool is_vee(const std::string& name) {
  return name == "zbv-formatted" || name == "v-half" || name == "v-min";
}

bool uses_primus_schedule(const Parameters& parameters, const MeshShape& mesh) {
  return mesh.pp > 1 && parameters.boolean("patch_primus_pipeline") &&
         !parameters.boolean("patch_zero_bubble");
}

void check_algorithm(const Parameters& parameters, int64_t chunks) {
  const std::string name = parameters.string(kAlgorithm);
  const bool is_interleaved = name == "1f1b-interleaved";
  const bool fits = is_vee(name) ? chunks == 2 : is_interleaved ? chunks > 1 : chunks == 1;
  if (fits) return;
  const char* needed = is_vee(name) ? "2" : is_interleaved ? "2 or more" : "1";
  raise_rule("schedule.chunks",
             "config: {}: this schedule needs {} piece{} of the model per pipeline rank, and there "
             "are {}; use {}={}",
             parameters.where(kAlgorithm), needed, needed[0] == '1' ? "" : "s", chunks, kChunks,
             needed[0] == '1' ? "null" : "2");
}

void check_offload(const Parameters& parameters, bool is_scheduled) {
  if (!parameters.boolean("offload")) return;
  if (is_scheduled && is_vee(parameters.string(kAlgorithm))) return;
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
                            const BatchConfig& batch) {
  const int64_t chunks = pipeline_chunks(parameters, mesh.pp);
  const bool is_scheduled = uses_primus_schedule(parameters, mesh);
  if (is_scheduled) check_algorithm(parameters, chunks);
  check_offload(parameters, is_scheduled);
  check_costs(parameters, mesh.pp);
  check_pending_backward(parameters);
  if (chunks > 1) check_group(parameters, mesh.pp, batch.num_microbatches);
}

}  // namespace sevenfold::config

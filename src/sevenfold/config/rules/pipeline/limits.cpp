#include "sevenfold/config/rules/pipeline/limits.h"

#include <algorithm>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

bool offloads(const std::string& algorithm) {
  return algorithm == "zbv-formatted" || algorithm == "v-half" || algorithm == "v-min";
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

double as_number(const Value& value) {
  return value.kind == ValueKind::kInt ? static_cast<double>(value.integer) : value.number;
}

// Time of each rank; 1000 where no key says.
std::vector<double> costs_of_ranks(const Parameters& parameters, const char* key, int64_t pp) {
  constexpr double kUsual = 1000.0;
  const Value& cost = parameters.at(key);
  std::vector<double> costs;
  for (const Value& item : cost.list) costs.push_back(as_number(item));
  if (costs.empty())
    costs.assign(static_cast<size_t>(pp), cost.is_null() ? kUsual : as_number(cost));
  return costs;
}

void fill_costs(const Parameters& parameters, int64_t pp, PipelineConfig& pipeline) {
  if (parameters.is_null("pp_cost_f") && parameters.is_null("pp_cost_b") &&
      parameters.is_null("pp_cost_w"))
    return;
  pipeline.forward = costs_of_ranks(parameters, "pp_cost_f", pp);
  pipeline.backward_input = costs_of_ranks(parameters, "pp_cost_b", pp);
  pipeline.backward_weight = costs_of_ranks(parameters, "pp_cost_w", pp);
}

// P micro batches make the heuristic ZB-1p, 2P make it ZB-2p.
void fill_pending_backward(Parameters& parameters, int64_t pp, PipelineConfig& pipeline) {
  constexpr const char* kKey = "zero_bubble_max_pending_backward";
  if (pipeline.algorithm != "zero-bubble-heuristic") return;
  const Value& limit = parameters.at(kKey);
  const bool is_number = limit.kind == ValueKind::kInt;
  pipeline.max_memory = static_cast<double>(is_number ? limit.integer : pp);
  if (!is_number)
    parameters.notice(fmt::format(
        "{}: taken as {}, the micro batches in flight of 1F1B; device memory is not asked",
        parameters.where(kKey), pp));
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

void resolve_limits(Parameters& parameters, const Selection& selection, int64_t pp,
                    PipelineConfig& pipeline) {
  check_costs(parameters, pp);
  check_pending_backward(parameters);
  check_offload(parameters,
                selection.source == ScheduleSource::kPrimus && offloads(pipeline.algorithm));
  if (selection.source == ScheduleSource::kZeroBubble)
    fill_pending_backward(parameters, pp, pipeline);
  if (selection.source == ScheduleSource::kPrimus ||
      selection.source == ScheduleSource::kSevenfold) {
    fill_costs(parameters, pp, pipeline);
    const Value& memory = parameters.at("pp_max_mem");
    if (!memory.is_null()) pipeline.max_memory = as_number(memory);
  }
  if (pipeline.num_chunks > 1)
    pipeline.group_size =
        parameters.optional_integer("microbatch_group_size_per_vp_stage").value_or(0);
}

void check_pipeline_batches(const Parameters& parameters, const SevenfoldBlock& block,
                            const Config& config) {
  const int64_t num_microbatches = config.batch.num_microbatches;
  if (config.pipeline.num_chunks > 1) check_group(parameters, config.mesh.pp, num_microbatches);
  if (config.pipeline.schedule_file.empty()) return;
  const int64_t of_table = read_schedule_file(block).num_microbatches;
  if (of_table != num_microbatches)
    raise_rule("schedule.file",
               "config: {}: its steps have {} micro batches, and those of the run {}; use "
               "global_batch_size={}",
               block.where("schedule_file"), of_table, num_microbatches,
               of_table * config.batch.micro_batch_size * config.mesh.dp);
}

}  // namespace sevenfold::config

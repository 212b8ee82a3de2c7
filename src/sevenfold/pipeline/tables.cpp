#include "sevenfold/pipeline/tables.h"

#include <algorithm>
#include <set>

#include "sevenfold/config/run_schedule.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

std::set<int64_t> microbatch_counts(const Config& config) {
  const BatchConfig& batch = config.batch;
  std::set<int64_t> counts = {batch.num_microbatches};
  for (const BatchStage& stage : batch.schedule)
    counts.insert(stage.global_batch_size / (batch.micro_batch_size * config.mesh.dp));
  return counts;
}

std::vector<StageLayers> stages_of(const Config& config) {
  if (!config.pipeline.stages.empty()) return config.pipeline.stages;
  SEVENFOLD_CHECK_EQ(config.mesh.pp, 1);
  return {{.num_layers = config.model.num_layers, .has_embedding = true, .has_head = true}};
}

void check_stages(const Schedule& schedule, const Schedule& first, size_t num_stages) {
  if (schedule.num_stages != static_cast<int64_t>(num_stages))
    raise<ConfigError>(
        "pipeline: {} on {} ranks runs {} stages, and the layers are cut into {}; cut them into {} "
        "pieces per rank",
        schedule.algorithm, schedule.num_ranks(), schedule.num_stages, num_stages,
        schedule.num_stages / schedule.num_ranks());
  // `auto` may choose differently for every number of micro batches; stages stay where they are.
  if (schedule.placement != first.placement)
    raise<ConfigError>(
        "pipeline: batches of {} and of {} micro batches took the schedules {} ({}) and {} ({}), "
        "which place the stages differently; name one of them instead of auto",
        first.num_microbatches, schedule.num_microbatches, first.algorithm,
        placement_name(first.placement), schedule.algorithm, placement_name(schedule.placement));
}

// Planted: of stages of unequal size, the largest loses its last layer.
void lose_layer(StageLayers& stage, const std::vector<StageLayers>& all) {
  const auto [least, most] = std::minmax_element(
      all.begin(), all.end(),
      [](const auto& left, const auto& right) { return left.num_layers < right.num_layers; });
  if (least->num_layers < most->num_layers && stage.first_layer == most->first_layer)
    stage.num_layers = std::min(stage.num_layers, most->num_layers - 1);
}

}  // namespace

StepTable::StepTable(Schedule of_step)
    : schedule(std::move(of_step)),
      actions(actions_of(schedule)),
      ahead(runs_ahead(schedule, actions)) {
  for (const std::vector<Row>& rows : schedule.rows) {
    std::vector<bool>& ends = completes.emplace_back();
    for (size_t position = 0; position < rows.size(); ++position)
      ends.push_back(completes_gradients(rows, position));
  }
}

PipelineTables::PipelineTables(const Config& config) : stages_(stages_of(config)) {
  for (const int64_t count : microbatch_counts(config)) {
    const auto added = tables_.emplace(count, StepTable(run_schedule(config, count))).first;
    check_stages(added->second.schedule, any(), stages_.size());
  }
}

const StepTable& PipelineTables::of(int64_t num_microbatches) const {
  const auto found = tables_.find(num_microbatches);
  SEVENFOLD_CHECK(found != tables_.end(), "no schedule of {} micro batches", num_microbatches);
  return found->second;
}

StepTable PipelineTables::forward_only(int64_t num_microbatches) const {
  Schedule schedule = any();
  const int64_t num_ranks = schedule.num_ranks();
  const int64_t chunks = schedule.num_stages / num_ranks;
  schedule.num_microbatches = num_microbatches;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    std::vector<Row>& rows = schedule.rows[static_cast<size_t>(rank)];
    rows.clear();
    for (int64_t group = 0; group < num_microbatches; group += num_ranks)
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int64_t m = group; m < std::min(group + num_ranks, num_microbatches); ++m)
          rows.push_back({.op = Op::kForward,
                          .stage = stage_of(schedule.placement, num_ranks, rank, chunk),
                          .chunk = chunk,
                          .microbatch = m});
  }
  return StepTable(std::move(schedule));
}

std::vector<int64_t> PipelineTables::owners_of(int64_t stage) const {
  const Schedule& schedule = any();
  std::set<int64_t> owners;
  for (int64_t flow = 0; flow < schedule.num_copies(); ++flow)
    owners.insert(site_of(schedule.placement, schedule.num_ranks(), stage, flow).rank);
  return {owners.begin(), owners.end()};
}

RankStages PipelineTables::rank_stages(int64_t rank, FaultSet faults) const {
  const Schedule& schedule = any();
  std::vector<int64_t> of_chunk;
  for (int64_t chunk = 0; chunk < schedule.num_chunks(); ++chunk)
    of_chunk.push_back(stage_of(schedule.placement, schedule.num_ranks(), rank, chunk));
  std::vector<int64_t> ascending = of_chunk;
  std::sort(ascending.begin(), ascending.end());

  std::set<int64_t> table_owners;
  for (const int64_t end : {int64_t{0}, schedule.num_stages - 1})
    for (const int64_t owner : owners_of(end)) table_owners.insert(owner);
  RankStages result;
  for (const int64_t stage : ascending) {
    StageLayers layers = stages_[static_cast<size_t>(stage)];
    if (faults.has(Fault::kLayerLost)) lose_layer(layers, stages_);
    result.stages.push_back({layers, owners_of(stage), {table_owners.begin(), table_owners.end()}});
  }
  for (const int64_t stage : of_chunk)
    result.part_of_chunk.push_back(static_cast<size_t>(
        std::find(ascending.begin(), ascending.end(), stage) - ascending.begin()));
  return result;
}

}  // namespace sevenfold

#include "sevenfold/config/run_schedule.h"

#include <fstream>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/csv.h"

namespace sevenfold {
namespace {

// Times of ranks, shared among the stages that each holds.
std::vector<PassCosts> costs_of_stages(const Config& config) {
  const PipelineConfig& pipeline = config.pipeline;
  std::vector<PassCosts> costs;
  if (pipeline.forward.empty()) return costs;
  const Placement placement = find_algorithm(pipeline.algorithm).placement;
  const auto num_stages = static_cast<int64_t>(pipeline.stages.size());
  const double share = static_cast<double>(config.mesh.pp) / static_cast<double>(num_stages);
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    const auto rank = static_cast<size_t>(placement == Placement::kVee
                                              ? site_of(placement, config.mesh.pp, stage, 0).rank
                                              : stage % config.mesh.pp);
    costs.push_back({share * pipeline.forward[rank], share * pipeline.backward_input[rank],
                     share * pipeline.backward_weight[rank], share});
  }
  return costs;
}

Schedule from_table(const Config& config, int64_t num_microbatches) {
  const std::string& path = config.pipeline.schedule_file;
  std::ifstream file(path);
  if (!file) raise<DataError>("schedule: cannot read {}; check its path", path);
  Schedule schedule = read_csv(file, path);
  if (schedule.num_ranks() != config.mesh.pp || schedule.num_microbatches != num_microbatches)
    raise<ConfigError>(
        "schedule: {} is for {} ranks and {} micro batches, and a step has {} and {}; use a table "
        "for those, or an algorithm",
        path, schedule.num_ranks(), schedule.num_microbatches, config.mesh.pp, num_microbatches);
  return schedule;
}

}  // namespace

ScheduleRequest schedule_request(const Config& config, int64_t num_microbatches) {
  const PipelineConfig& pipeline = config.pipeline;
  ScheduleRequest request{.num_ranks = config.mesh.pp,
                          .num_microbatches = num_microbatches,
                          .num_chunks = pipeline.num_chunks,
                          .group_size = pipeline.group_size,
                          .max_memory = pipeline.max_memory,
                          .has_barrier = !pipeline.post_validation};
  request.costs.stages = costs_of_stages(config);
  return request;
}

Schedule run_schedule(const Config& config, int64_t num_microbatches) {
  if (!config.pipeline.schedule_file.empty()) return from_table(config, num_microbatches);
  return generate(config.pipeline.algorithm, schedule_request(config, num_microbatches));
}

}  // namespace sevenfold

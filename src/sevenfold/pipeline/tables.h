#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/core/faults.h"
#include "sevenfold/model/model.h"
#include "sevenfold/schedule/ahead.h"
#include "sevenfold/schedule/communication.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// The schedule of a step, ready to run.
struct StepTable {
  explicit StepTable(Schedule of_step);

  Schedule schedule;
  std::vector<std::vector<Action>> actions;  // per rank: its rows with sends and receives
  // [rank][position]: completes_gradients of the row.
  std::vector<std::vector<bool>> completes;
  std::vector<RunAhead> ahead;  // per rank
};

// What one pipeline rank holds of the model.
struct RankStages {
  std::vector<ModelStage> stages;     // in the order of the model, as build_stages takes them
  std::vector<size_t> part_of_chunk;  // per chunk of the schedule, the index of its stage in them
};

// The tables that a run needs, one for each number of micro batches that its batches have. Shared
// by the ranks of a process: some algorithms search for seconds.
class PipelineTables {
 public:
  // Throws ConfigError if the algorithm has no schedule for these numbers, or the file no table
  // that fits.
  explicit PipelineTables(const Config& config);

  const StepTable& of(int64_t num_microbatches) const;
  // The micro batches 0 .. n-1 through all stages, forward only, in groups of one a rank.
  StepTable forward_only(int64_t num_microbatches) const;
  RankStages rank_stages(int64_t rank, FaultSet faults = {}) const;

 private:
  const Schedule& any() const { return tables_.begin()->second.schedule; }
  std::vector<int64_t> owners_of(int64_t stage) const;

  std::vector<StageLayers> stages_;  // of the model
  std::map<int64_t, StepTable> tables_;
};

}  // namespace sevenfold

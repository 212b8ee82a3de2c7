#pragma once

#include "sevenfold/config/config.h"
#include "sevenfold/schedule/request.h"

namespace sevenfold {

// What the run asks of a schedule of `num_microbatches`: ranks, pieces, limits, and the time of
// every stage. pipeline.schedule_file is not looked at.
ScheduleRequest schedule_request(const Config& config, int64_t num_microbatches);

// The schedule that a step of `num_microbatches` runs: from the table in pipeline.schedule_file, or
// made by the algorithm. Throws ConfigError if the algorithm has none for these numbers or the
// table is for others, DataError if the table is wrong.
Schedule run_schedule(const Config& config, int64_t num_microbatches);

}  // namespace sevenfold

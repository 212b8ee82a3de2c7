#pragma once

#include <vector>

#include "sevenfold/schedule/search/blocks.h"
#include "sevenfold/schedule/search/improve.h"

namespace sevenfold {

// Work of a search in placed passes. A tenth of a second for the schedules of one block, a few
// seconds for a search of its own.
constexpr int64_t kBlockEffort = 2'000'000;
constexpr int64_t kSearchEffort = 40'000'000;

// The building block repeated for all micro batches, its ends squeezed and its passes moved
// together for the request's times, within the memory that the repeated block needs.
Schedule v_block_schedule(const char* algorithm, const ScheduleRequest& request,
                          const VBlock& block);

// The memory of 1F1B, or what one micro batch at a time takes if that is more.
double usual_memory(const PassProblem& problem);

// Throws ConfigError if not even one micro batch at a time keeps within problem.memory.
void check_memory(const char* algorithm, const PassProblem& problem);

// The shortest order within problem.memory that a search over V schedules finds, starting from the
// blocks of the papers, from blocks with drawn offsets and from `more_seeds`.
PassOrder v_search(const PassProblem& problem, Objective objective,
                   std::vector<PassOrder> more_seeds);

}  // namespace sevenfold

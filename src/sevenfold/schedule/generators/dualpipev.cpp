#include "sevenfold/core/error.h"
#include "sevenfold/schedule/generators/dual_steps.h"
#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule dualpipev(const ScheduleRequest& request) {
  const int64_t ranks = request.num_ranks;
  if (request.num_microbatches < 2 * ranks)
    raise<ConfigError>(
        "schedule: dualpipev on {} ranks wants at least {} micro batches, twice the ranks; {} "
        "given, "
        "zbv-formatted has no such limit",
        ranks, 2 * ranks, request.num_microbatches);
  Schedule schedule = empty_schedule("dualpipev", Placement::kVee, request, 2);
  for (int64_t rank = 0; rank < ranks; ++rank)
    append_dual_steps(schedule, rank,
                      {.depth = ranks, .distance = rank, .microbatches = request.num_microbatches});
  return schedule;
}

}  // namespace sevenfold

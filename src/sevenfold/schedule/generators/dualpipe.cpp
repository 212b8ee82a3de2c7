#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/generators/dual_steps.h"
#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule dualpipe(const ScheduleRequest& request) {
  const int64_t ranks = request.num_ranks;
  const int64_t count = request.num_microbatches;
  if (ranks % 2 != 0)
    raise<ConfigError>(
        "schedule: dualpipe wants an even number of stages, because stages r and P-1-r share two "
        "ranks; "
        "{} is odd, use {} or {}, or dualpipev",
        ranks, ranks + 1, std::max<int64_t>(2, ranks - 1));
  if (count % 2 != 0 || count < 2 * ranks)
    raise<ConfigError>(
        "schedule: dualpipe on {} stages wants an even number of micro batches, half from each "
        "end, and "
        "at least {} (twice the stages); {} given",
        ranks, 2 * ranks, count);
  Schedule schedule = empty_schedule("dualpipe", Placement::kBidirectional, request, 1);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int near = rank < ranks / 2 ? 0 : 1;  // the flow that enters on this side
    const int64_t half = count / 2;
    append_dual_steps(schedule, rank,
                      {.depth = ranks / 2,
                       .distance = std::min(rank, ranks - 1 - rank),
                       .microbatches = half,
                       .first_microbatch = {near * half, (1 - near) * half},
                       .chunk = {near, 1 - near},
                       .flow = {near, 1 - near}});
  }
  return schedule;
}

}  // namespace sevenfold

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule zb_h2(const ScheduleRequest& request) {
  const int64_t ranks = request.num_ranks;
  const int64_t count = request.num_microbatches;
  Schedule schedule = empty_schedule("zb-h2", Placement::kLinear, request, 1);
  const auto order = interleaved_order(count, 1, count, false);
  for (int64_t rank = 0; rank < ranks; ++rank)
    append_lagged_weights(schedule, rank, order, order, 2 * (ranks - 1 - rank), 2 * rank);
  return schedule;
}

}  // namespace sevenfold

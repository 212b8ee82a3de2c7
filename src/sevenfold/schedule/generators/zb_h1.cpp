#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule zb_h1(const ScheduleRequest& request) {
  Schedule schedule = empty_schedule("zb-h1", Placement::kLinear, request, 1);
  const int64_t count = request.num_microbatches;
  const auto order = interleaved_order(count, 1, count, false);
  // The lag makes all ranks hold the same number of micro batches.
  for (int64_t rank = 0; rank < request.num_ranks; ++rank)
    append_lagged_weights(schedule, rank, order, order, request.num_ranks - 1 - rank, rank);
  return schedule;
}

}  // namespace sevenfold

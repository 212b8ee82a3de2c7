#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule zb_interleaved(const ScheduleRequest& request) {
  const int64_t chunks = request.num_chunks;
  const int64_t group = interleaved_group_size(request);
  Schedule schedule = empty_schedule("zb-interleaved", Placement::kLoop, request, chunks);
  const auto forwards = interleaved_order(request.num_microbatches, chunks, group, false);
  const auto backwards = interleaved_order(request.num_microbatches, chunks, group, true);
  // One extra forward per later rank, not two: B alone is half of what 1F1B's warm-up waits for.
  for (int64_t rank = 0; rank < request.num_ranks; ++rank)
    append_lagged_weights(schedule, rank, forwards, backwards,
                          (chunks - 1) * group + request.num_ranks - 1 - rank, rank);
  return schedule;
}

}  // namespace sevenfold

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule looped_bfs(const ScheduleRequest& request) {
  const int64_t chunks = request.num_chunks;
  const int64_t count = request.num_microbatches;
  Schedule schedule = empty_schedule("looped-bfs", Placement::kLoop, request, chunks);
  for (int64_t rank = 0; rank < request.num_ranks; ++rank) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      for (int64_t m = 0; m < count; ++m) append(schedule, rank, Op::kForward, chunk, m);
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk)
      for (int64_t m = count - 1; m >= 0; --m) append(schedule, rank, Op::kBackward, chunk, m);
  }
  return schedule;
}

}  // namespace sevenfold

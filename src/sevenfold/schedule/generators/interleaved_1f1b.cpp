#include <algorithm>

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule interleaved_1f1b(const ScheduleRequest& request) {
  const int64_t chunks = request.num_chunks;
  const int64_t group = interleaved_group_size(request);
  const auto forwards = interleaved_order(request.num_microbatches, chunks, group, false);
  const auto backwards = interleaved_order(request.num_microbatches, chunks, group, true);
  const auto count = static_cast<int64_t>(forwards.size());
  Schedule schedule = empty_schedule("1f1b-interleaved", Placement::kLoop, request, chunks);
  for (int64_t rank = 0; rank < request.num_ranks; ++rank) {
    const int64_t warmup =
        std::min(2 * (request.num_ranks - 1 - rank) + (chunks - 1) * group, count);
    for (int64_t k = 0; k < count + warmup; ++k) {
      const ChunkPass* forward = k < count ? &forwards[static_cast<size_t>(k)] : nullptr;
      if (forward != nullptr)
        append(schedule, rank, Op::kForward, forward->chunk, forward->microbatch);
      if (k < warmup) continue;
      const ChunkPass& backward = backwards[static_cast<size_t>(k - warmup)];
      append(schedule, rank, Op::kBackward, backward.chunk, backward.microbatch);
    }
  }
  return schedule;
}

}  // namespace sevenfold

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {

Schedule gpipe(const ScheduleRequest& request) {
  Schedule schedule = empty_schedule("gpipe", Placement::kLinear, request, 1);
  for (int64_t rank = 0; rank < request.num_ranks; ++rank)
    for (const Op op : {Op::kForward, Op::kBackward})
      for (int64_t m = 0; m < request.num_microbatches; ++m) append(schedule, rank, op, 0, m);
  return schedule;
}

}  // namespace sevenfold

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/v_search.h"

namespace sevenfold {

Schedule v_min(const ScheduleRequest& request) {
  return v_block_schedule("v-min", request, v_min_block(request.num_ranks));
}

}  // namespace sevenfold

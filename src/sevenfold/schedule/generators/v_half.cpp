#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/v_search.h"

namespace sevenfold {

Schedule v_half(const ScheduleRequest& request) {
  return v_block_schedule("v-half", request, v_half_block(request.num_ranks));
}

}  // namespace sevenfold

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/v_search.h"

namespace sevenfold {

Schedule v_zb(const ScheduleRequest& request) {
  return v_block_schedule("v-zb", request, v_zb_block(request.num_ranks));
}

}  // namespace sevenfold

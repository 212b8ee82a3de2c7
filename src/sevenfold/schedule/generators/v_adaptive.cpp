#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/v_search.h"

namespace sevenfold {

Schedule v_adaptive(const ScheduleRequest& request) {
  PassProblem problem(request, Placement::kVee, 2, true);
  problem.memory = request.has_memory_limit() ? request.max_memory : usual_memory(problem);
  check_memory("v-adaptive", problem);
  const PassOrder formatted = to_order(problem, zbv_formatted(request));
  return to_schedule(problem, v_search(problem, Objective::kMakespan, {formatted}), "v-adaptive");
}

}  // namespace sevenfold

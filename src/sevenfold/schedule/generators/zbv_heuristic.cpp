#include <algorithm>

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/v_search.h"

namespace sevenfold {

Schedule zbv_heuristic(const ScheduleRequest& request) {
  PassProblem problem(request, Placement::kVee, 2, true);
  problem.memory = std::min(request.max_memory, usual_memory(problem));
  check_memory("zbv-heuristic", problem);
  const PassOrder formatted = to_order(problem, zbv_formatted(request));
  return to_schedule(problem, v_search(problem, Objective::kLongest, {formatted}), "zbv-heuristic");
}

}  // namespace sevenfold

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/v_search.h"

namespace sevenfold {

Schedule v_adaptive(const ScheduleRequest& request) {
  PassProblem problem(request, Placement::kVee, 2, true);
  const double least = peak_of(problem, sequential_order(problem));
  if (!request.has_memory_limit())
    problem.memory = std::max(static_cast<double>(request.num_ranks), least);
  if (least > problem.memory)
    raise<ConfigError>(
        "schedule: v-adaptive cannot hold less than {} activations, one micro batch at a time; the "
        "limit "
        "is {}",
        least, problem.memory);
  const PassOrder formatted = to_order(problem, zbv_formatted(request));
  return to_schedule(problem, v_search(problem, Objective::kMakespan, {formatted}), "v-adaptive");
}

}  // namespace sevenfold

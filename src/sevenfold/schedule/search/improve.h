#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/schedule/search/justify.h"

namespace sevenfold {

struct SearchEffort {
  int64_t passes =
      0;  // passes that may be placed in all, over all trials: about 10 million a second
  double enough = 0;  // a time that no schedule beats: the search ends there
};

// A short order within problem.memory. Justifies every seed that fits, then, from the best, moves a
// few passes along their lists, justifies again, and keeps what is not longer. The same numbers
// give the same order everywhere: it draws from a generator of its own and counts work, not
// seconds. At least one seed must finish and fit.
PassOrder improved(const PassProblem& problem, const std::vector<PassOrder>& seeds,
                   Objective objective, SearchEffort effort);

}  // namespace sevenfold

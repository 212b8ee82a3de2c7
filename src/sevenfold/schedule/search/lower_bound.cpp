#include "sevenfold/schedule/search/lower_bound.h"

#include <algorithm>
#include <vector>

namespace sevenfold {
namespace {

size_t at(PassId pass) {
  return static_cast<size_t>(pass);
}

std::vector<double> busy_times(const PassProblem& problem) {
  std::vector<double> busy(static_cast<size_t>(problem.num_ranks), 0);
  for (size_t pass = 0; pass < problem.duration.size(); ++pass)
    busy[static_cast<size_t>(problem.rank[pass])] += problem.duration[pass];
  return busy;
}

}  // namespace

double lower_bound(const PassProblem& problem, Objective objective) {
  const std::vector<double> busy = busy_times(problem);
  const double longest = *std::max_element(busy.begin(), busy.end());
  if (objective == Objective::kLongest) return longest;
  double bound = longest;
  double elapsed = 0;  // along the chain of micro batch 0
  std::vector<bool> has_started(busy.size(), false);
  for (PassId pass = problem.id(Op::kForward, 0, 0); pass != kNoPass;
       pass = problem.after[at(pass)]) {
    elapsed += problem.hop[at(pass)];
    const auto rank = static_cast<size_t>(problem.rank[at(pass)]);
    if (!has_started[rank]) bound = std::max(bound, elapsed + busy[rank]);
    has_started[rank] = true;
    elapsed += problem.duration[at(pass)];
    const PassId weight = problem.also_after[at(pass)];
    bound = std::max(bound, elapsed + (weight == kNoPass ? 0 : problem.duration[at(weight)]));
  }
  return bound;
}

}  // namespace sevenfold

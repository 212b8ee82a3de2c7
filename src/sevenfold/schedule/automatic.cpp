#include "sevenfold/schedule/automatic.h"

#include <cmath>
#include <optional>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;

std::vector<int64_t> chunk_choices(const Algorithm& algorithm, int64_t wanted) {
  if (wanted == 0 && algorithm.max_chunks > 2) return {2, 4};
  if (wanted == 0) return {algorithm.default_chunks};
  if (wanted < algorithm.min_chunks || wanted > algorithm.max_chunks) return {};
  return {wanted};
}

// Time, then peak, then chunks: smaller is better.
struct Rank {
  double time;
  double peak;
  int64_t chunks;

  bool operator<(const Rank& other) const {
    if (std::abs(time - other.time) > kRounding * time) return time < other.time;
    if (std::abs(peak - other.peak) > kRounding) return peak < other.peak;
    return chunks < other.chunks;
  }
};

}  // namespace

Schedule shortest_schedule(const ScheduleRequest& request) {
  std::optional<Schedule> best;
  Rank best_rank = {};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.placement == Placement::kBidirectional || algorithm.chooses) continue;
    for (const int64_t chunks : chunk_choices(algorithm, request.num_chunks)) {
      ScheduleRequest one = request;
      one.num_chunks = chunks;
      std::optional<Schedule> schedule = try_generate(algorithm, one);
      if (!schedule) continue;
      const Simulation figures = simulate(*schedule, request.costs);
      const Rank rank = {request.has_barrier ? figures.makespan : figures.longest,
                         figures.max_peak_activation(), chunks};
      if (best && !(rank < best_rank)) continue;
      best = std::move(schedule);
      best_rank = rank;
    }
  }
  if (!best)
    raise<ConfigError>(
        "schedule: no algorithm keeps {} ranks with {} micro batches within {} activations per "
        "rank; one "
        "micro batch needs 1: use a larger --max-memory, or leave --chunks out",
        request.num_ranks, request.num_microbatches, request.max_memory);
  return *std::move(best);
}

}  // namespace sevenfold

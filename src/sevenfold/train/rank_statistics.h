#pragma once

#include <array>
#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/pipeline/executor.h"
#include "sevenfold/train/output/metrics.h"
#include "sevenfold/train/stop_rule.h"

namespace sevenfold {

// What the ranks tell each other after a step: small, so that one exchange serves stopping and
// reporting.
struct RankStatistics {
  StopReason stop = StopReason::kNone;  // rank 0's decision, which all follow
  double blocked_s = 0.0;
  // The rank's passes, in seconds of Timeline::now_s.
  double first_start_s = 0.0;
  double last_end_s = 0.0;
  double busy_s = 0.0;
  double peak_bytes = 0.0;
  std::array<double, kNumMemoryCategories> peak_by_category{};
};

// Of this rank, now. blocked_before_s: seconds blocked in communication before the step.
RankStatistics statistics_of(const RankContext& rank, StopReason stop, double blocked_before_s,
                             const Execution& execution);

// Everybody's, by rank, on their way. Collective over all ranks; only finish() waits for them.
class StatisticsExchange {
 public:
  StatisticsExchange(const RankStatistics& mine, const RankContext& rank);
  std::vector<RankStatistics> finish();

 private:
  at::Tensor all_;
  Work gather_;
};

// Share of the ranks' time, from the first pass of a step to its last, in which they ran no pass.
double bubble_rate(const std::vector<RankStatistics>& all);
// The same where ranks go on to the next step without waiting for each other: of the time of the
// rank that took longest from its own first pass to its last.
double bubble_rate_without_barrier(const std::vector<RankStatistics>& all);

// Peak memory of the rank that needed most.
PeakMemory fullest_rank(const std::vector<RankStatistics>& all);

}  // namespace sevenfold

#include "sevenfold/train/stop_rule.h"

#include <fmt/format.h>

namespace sevenfold {

StopReason stop_after(const RunConfig& run, int64_t iteration, double running_s,
                      bool is_signalled) {
  if (iteration >= run.train_iters) return StopReason::kNone;  // it ends by itself
  if (is_signalled) return StopReason::kSignal;
  if (run.exit_interval > 0 && iteration % run.exit_interval == 0) return StopReason::kExitInterval;
  const auto limit_s = 60.0 * static_cast<double>(run.exit_duration_minutes);
  if (limit_s > 0.0 && running_s >= limit_s) return StopReason::kExitDuration;
  return StopReason::kNone;
}

std::string describe_stop(StopReason reason, int64_t iteration, const RunConfig& run) {
  switch (reason) {
    case StopReason::kNone:
      return "";
    case StopReason::kSignal:
      return fmt::format("stopped after iteration {} as asked by a signal", iteration);
    case StopReason::kExitInterval:
      return fmt::format("stopped after iteration {}: exit_interval={}", iteration,
                         run.exit_interval);
    case StopReason::kExitDuration:
      return fmt::format("stopped after iteration {}: exit_duration_in_mins={}", iteration,
                         run.exit_duration_minutes);
  }
  return "";
}

}  // namespace sevenfold

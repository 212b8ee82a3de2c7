#include "sevenfold/schedule/simulate.h"

#include <algorithm>
#include <numeric>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// What a pass adds to the activations of its rank: when it starts, and when it ends.
double added_at_start(const Pass& pass, double activation) {
  return pass.op == Op::kForward ? activation : 0;
}

double freed_at_end(const Pass& pass, double activation, double weight_memory) {
  switch (pass.op) {
    case Op::kBackward:
      return activation;
    case Op::kBackwardInput:
      return activation * (1 - weight_memory);
    case Op::kBackwardWeight:
      return activation * weight_memory;
    default:
      return 0;
  }
}

double bubble(double time, const std::vector<double>& busy) {
  const double total = std::accumulate(busy.begin(), busy.end(), 0.0);
  return time > 0 ? 1 - total / (time * static_cast<double>(busy.size())) : 0;
}

}  // namespace

double Simulation::bubble_rate() const {
  return bubble(makespan, busy);
}
double Simulation::bubble_rate_longest() const {
  return bubble(longest, busy);
}
double Simulation::max_peak_activation() const {
  return *std::max_element(peak_activation.begin(), peak_activation.end());
}

double peak_activation(const std::vector<Row>& rows, const std::vector<PassCosts>& stages,
                       double weight_memory) {
  double held = 0;
  double peak = 0;
  for (const Row& row : rows) {
    const Passes passes = passes_of(row);
    for (const Pass& pass : passes)
      held += added_at_start(pass, stages[static_cast<size_t>(pass.stage)].activation);
    peak = std::max(peak, held);
    for (const Pass& pass : passes)
      held -= freed_at_end(pass, stages[static_cast<size_t>(pass.stage)].activation, weight_memory);
  }
  return peak;
}

Simulation simulate(const Schedule& schedule, const ScheduleCosts& costs) {
  const std::vector<PassCosts> stages =
      stage_costs(costs, schedule.num_ranks(), schedule.num_stages);
  Replay run = replay(schedule, costs);
  SEVENFOLD_CHECK(run.stuck.empty(), "{} does not finish", schedule.algorithm);
  Simulation result;
  double first = 0;
  double last = 0;
  bool any = false;
  for (size_t rank = 0; rank < schedule.rows.size(); ++rank) {
    const std::vector<RowSpan>& spans = run.spans[rank];
    double busy = 0;
    for (const RowSpan& span : spans) busy += span.end - span.start;
    result.busy.push_back(busy);
    result.peak_activation.push_back(
        peak_activation(schedule.rows[rank], stages, costs.weight_memory));
    if (spans.empty()) continue;
    first = any ? std::min(first, spans.front().start) : spans.front().start;
    last = std::max(last, spans.back().end);
    any = true;
    result.longest = std::max(result.longest, spans.back().end - spans.front().start);
  }
  result.makespan = last - first;
  result.spans = std::move(run.spans);
  return result;
}

}  // namespace sevenfold

#include "sevenfold/schedule/costs.h"

#include <algorithm>
#include <cmath>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// Sums over all passes of the largest schedules stay far from what a number can hold.
constexpr double kMaxCost = 1e100;

void check_cost(const char* name, double value) {
  if (!std::isfinite(value) || value < 0)
    raise<ConfigError>("schedule: {} {} is not a cost; use a number of at least 0", name, value);
  if (value > kMaxCost)
    raise<ConfigError>("schedule: {} {} is too large to add up; use at most {}, in a larger unit",
                       name, value, kMaxCost);
}

void check_passes(const PassCosts& costs) {
  check_cost("forward time", costs.forward);
  check_cost("time of backward by input", costs.backward_input);
  check_cost("time of backward by weight", costs.backward_weight);
  check_cost("activation memory", costs.activation);
  if (costs.total() <= 0)
    raise<ConfigError>(
        "schedule: forward, backward by input and backward by weight all take no time; give at "
        "least one of them a time");
}

}  // namespace

ScheduleCosts in_own_unit(ScheduleCosts costs) {
  std::vector<double*> times = {&costs.link};
  const auto add = [&](PassCosts& pass) {
    times.insert(times.end(), {&pass.forward, &pass.backward_input, &pass.backward_weight});
  };
  if (costs.stages.empty()) add(costs.share);
  for (PassCosts& stage : costs.stages) add(stage);
  double longest = 0;
  for (const double* time : times) longest = std::max(longest, *time);
  if (longest <= 0) return costs;
  const int exponent = std::ilogb(longest);
  for (double* time : times) *time = std::ldexp(*time, -exponent);
  return costs;
}

void check_costs(const ScheduleCosts& costs) {
  check_passes(costs.share);
  check_cost("link time", costs.link);
  if (costs.weight_memory > 1)
    raise<ConfigError>(
        "schedule: weight memory {} is more than the whole activation; use a share from 0 to 1",
        costs.weight_memory);
  check_cost("weight memory", costs.weight_memory);
  for (const PassCosts& stage : costs.stages) check_passes(stage);
}

std::vector<PassCosts> stage_costs(const ScheduleCosts& costs, int64_t num_ranks,
                                   int64_t num_stages) {
  check_costs(costs);
  if (!costs.stages.empty()) {
    if (static_cast<int64_t>(costs.stages.size()) != num_stages)
      raise<ConfigError>("schedule: costs of {} stages are given, the schedule has {}",
                         costs.stages.size(), num_stages);
    return costs.stages;
  }
  const double part = static_cast<double>(num_ranks) / static_cast<double>(num_stages);
  const PassCosts stage = {costs.share.forward * part, costs.share.backward_input * part,
                           costs.share.backward_weight * part, costs.share.activation * part};
  return std::vector<PassCosts>(static_cast<size_t>(num_stages), stage);
}

double pass_time(Op op, const PassCosts& stage) {
  switch (op) {
    case Op::kForward:
      return stage.forward;
    case Op::kBackwardInput:
      return stage.backward_input;
    case Op::kBackwardWeight:
      return stage.backward_weight;
    case Op::kBackward:
      return stage.backward_input + stage.backward_weight;
    case Op::kForwardBackward:
      break;  // two passes, of two stages
  }
  SEVENFOLD_CHECK(false, "a fused row is not one pass");
  return 0;
}

double row_time(const Row& row, const std::vector<PassCosts>& stages) {
  double time = 0;
  for (const Pass& pass : passes_of(row))
    time += pass_time(pass.op, stages.at(static_cast<size_t>(pass.stage)));
  return time;
}

}  // namespace sevenfold

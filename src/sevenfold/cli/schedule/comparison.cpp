#include "sevenfold/cli/schedule/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"

namespace sevenfold::cli {

using json = nlohmann::ordered_json;

ScheduleComparison compare_algorithms(const ScheduleRequest& request) {
  ScheduleComparison result;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.chooses) continue;
    try {
      Schedule schedule = generate(algorithm.name, request);
      Simulation simulation = simulate(schedule, request.costs);
      result.schedules.push_back({std::move(schedule), std::move(simulation)});
    } catch (const ConfigError& error) {
      result.refusals.emplace_back(algorithm.name, error.what());
    }
  }
  if (result.schedules.empty())
    raise<ConfigError>("schedule: no algorithm has a schedule for these numbers: {}",
                       result.refusals.front().second);
  std::stable_sort(result.schedules.begin(), result.schedules.end(),
                   [](const MeasuredSchedule& left, const MeasuredSchedule& right) {
                     return left.simulation.makespan < right.simulation.makespan;
                   });
  return result;
}

json comparison_json(const ScheduleComparison& comparison) {
  json list = json::array();
  for (const MeasuredSchedule& one : comparison.schedules) list.push_back(figures_json(one));
  json refused = json::array();
  for (const auto& [name, reason] : comparison.refusals)
    refused.push_back({{"algorithm", name}, {"reason", reason}});
  return {{"schedules", list}, {"refused", refused}};
}

void print_comparison(const ScheduleComparison& comparison) {
  fmt::print("{:<22} {:>6} {:>10} {:>8} {:>10} {:>8} {:>8} {:>8}\n", "algorithm", "chunks",
             "makespan", "bubble", "longest", "bubble", "peak", "weights");
  for (const MeasuredSchedule& one : comparison.schedules)
    fmt::print("{:<22} {:>6} {:>10g} {:>7.2f}% {:>10g} {:>7.2f}% {:>8g} {:>7}x\n",
               one.schedule.algorithm, one.schedule.num_chunks(), one.simulation.makespan,
               100 * one.simulation.bubble_rate(), one.simulation.longest,
               100 * one.simulation.bubble_rate_longest(), one.simulation.max_peak_activation(),
               one.schedule.num_copies());
  for (const auto& [name, reason] : comparison.refusals) fmt::print("{:<22} {}\n", name, reason);
}

}  // namespace sevenfold::cli

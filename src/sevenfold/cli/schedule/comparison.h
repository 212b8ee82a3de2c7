#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sevenfold/cli/schedule/figures.h"
#include "sevenfold/schedule/request.h"

namespace sevenfold::cli {

// Every algorithm that has a schedule for a request, shortest first; for the others why not.
struct ScheduleComparison {
  std::vector<MeasuredSchedule> schedules;
  std::vector<std::pair<std::string, std::string>> refusals;  // algorithm and reason
};

// Throws ConfigError if no algorithm has one.
ScheduleComparison compare_algorithms(const ScheduleRequest& request);

nlohmann::ordered_json comparison_json(const ScheduleComparison& comparison);
void print_comparison(const ScheduleComparison& comparison);

}  // namespace sevenfold::cli

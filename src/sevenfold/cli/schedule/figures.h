#pragma once

#include <nlohmann/json.hpp>

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold::cli {

// A schedule and what it costs.
struct MeasuredSchedule {
  Schedule schedule;
  Simulation simulation;
};

// Sizes, times, bubbles and memory.
nlohmann::ordered_json figures_json(const MeasuredSchedule& one);
// The same and "operations": per rank its rows with their times.
nlohmann::ordered_json schedule_json(const MeasuredSchedule& one);
// The figures as five lines for a reader.
void print_figures(const MeasuredSchedule& one);

}  // namespace sevenfold::cli

#pragma once

#include <vector>

#include "sevenfold/schedule/costs.h"
#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/replay.h"

namespace sevenfold {

// What a schedule costs. Times are in the unit of the costs.
struct Simulation {
  std::vector<std::vector<RowSpan>> spans;  // [rank][position]
  double makespan = 0;  // last end - first start over all ranks: what a step with a barrier takes
  // Last end - first start of the rank that takes longest: what a step takes when the optimizer
  // needs no barrier, so that the next step's staircase fits into this one's. The zero-bubble
  // papers call this the cost.
  double longest = 0;
  std::vector<double> busy;             // per rank
  std::vector<double> peak_activation;  // per rank; unit: see PassCosts::activation

  // Shares of the ranks' time in which they wait: 1 - busy / time, meant over the ranks.
  double bubble_rate() const;
  double bubble_rate_longest() const;
  double max_peak_activation() const;
};

// Needs a schedule that validate() finds nothing wrong with.
Simulation simulate(const Schedule& schedule, const ScheduleCosts& costs);

// Most activation memory that rows in this order hold at once: an activation is there from the
// start of its F to the end of its W or BW; after B only its weight_memory share. Rows run one at a
// time, so their times do not matter.
double peak_activation(const std::vector<Row>& rows, const std::vector<PassCosts>& stages,
                       double weight_memory);

}  // namespace sevenfold

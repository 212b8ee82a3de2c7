#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// Times of the passes of one micro batch, in any unit, and the activation that its forward leaves.
struct PassCosts {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double activation = 1;  // unit: one micro batch through one rank's share of the layers

  double total() const { return forward + backward_input + backward_weight; }
};

// What a schedule is measured with.
struct ScheduleCosts {
  // Through the whole share of a rank (1/P of the layers). A stage is P/S of it unless `stages`
  // says otherwise.
  PassCosts share;
  // From the end of a pass to the moment when a neighbour on another rank has its result. A link is
  // never busy and never occupies a rank.
  double link = 0;
  // Share of an activation that must stay between B and W (the layer inputs and output gradients
  // that weight gradients are made of); B frees the rest. In the terms of arXiv 2401.10241:
  // M_W/M_B.
  double weight_memory = 1;
  // Uneven stages: absolute costs, one per stage. Empty: all stages alike.
  std::vector<PassCosts> stages;
};

// Throws ConfigError if a cost is negative, not finite or above 1e100, if no pass takes any time,
// or if the share of weight memory is above 1.
void check_costs(const ScheduleCosts& costs);

// The same costs in a unit of time in which the longest takes from 1 to 2: what a search finds then
// does not depend on the user's unit. The factor is a power of two, so nothing is rounded. Needs
// costs that check_costs takes.
ScheduleCosts in_own_unit(ScheduleCosts costs);

// Costs of each stage of a model cut into `num_stages` on `num_ranks` ranks.
// Throws ConfigError as check_costs does, and if costs.stages has another length.
std::vector<PassCosts> stage_costs(const ScheduleCosts& costs, int64_t num_ranks,
                                   int64_t num_stages);

// Time that the pass occupies its rank.
double pass_time(Op op, const PassCosts& stage);
double row_time(const Row& row, const std::vector<PassCosts>& stages);

}  // namespace sevenfold

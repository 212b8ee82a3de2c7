#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/schedule/communication.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// What a rank may run before it is sure of its weights: the forwards before its first backward, as
// long as what they read comes from such forwards of other ranks. No gradient is touched, so if the
// weights turn out to be others all of it can be thrown away and run again.
struct RunAhead {
  size_t num_actions = 0;  // of the rank's list, from its start; then comes a row that must wait
  // Messages that one end's entries ahead have and the other's have not, by the other rank: what
  // this rank still has to send there, or to receive from there, before both have as many.
  std::vector<int64_t> unsent;
  std::vector<int64_t> unreceived;
};

// By rank. actions: actions_of(schedule).
std::vector<RunAhead> runs_ahead(const Schedule& schedule,
                                 const std::vector<std::vector<Action>>& actions);

}  // namespace sevenfold

#pragma once

#include <string>
#include <vector>

#include "sevenfold/config/config.h"

namespace sevenfold::bench {

// A layout that takes part: its ranks are threads that wait while others compute.
struct Contestant {
  std::string name;
  Config config;
};

// Seconds of each contestant's training steps, [contestant][round], interleaved: in every round
// each takes one step, in turn. The first `warm_up` rounds are left out. Prints the losses of the
// last round, so that one sees that all train the same model.
std::vector<std::vector<double>> run_in_turn(const std::vector<Contestant>& contestants, int rounds,
                                             int warm_up = 2);

}  // namespace sevenfold::bench

#pragma once

#include <string>

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {

// A drawing of the schedule as an SVG document of its own, 1600 wide: a lane per rank with its
// passes in colour (forward blue, backward by input teal, by weight orange, both at once green;
// later chunks lighter), below each lane the activations that the rank holds over time, on its
// right peak and idle share, and a legend with the figures of the whole.
std::string draw_svg(const Schedule& schedule, const Simulation& simulation,
                     const ScheduleCosts& costs);

}  // namespace sevenfold

#pragma once

#include <optional>
#include <string>

#include "sevenfold/schedule/costs.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// The first thing wrong with a schedule, as a sentence that names rank, row and rule; nothing if it
// can be executed. It looks at, in this order:
//   completeness  every stage and micro batch once forward, once backward (BW, or B and W), on the
//   rank
//                 and chunk that hold the stage, in the flow that the micro batch belongs to
//   order         on each rank F before its B or BW, and B before its W
//   liveness      no ranks that wait for each other, even if a send blocks until it is received
std::optional<std::string> find_fault(const Schedule& schedule);

// The first rank that holds more than `max_memory` activations at once, as a sentence.
std::optional<std::string> find_excess(const Schedule& schedule, const ScheduleCosts& costs,
                                       double max_memory);

}  // namespace sevenfold

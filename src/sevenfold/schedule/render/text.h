#pragma once

#include <string>

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {

// A drawing of the schedule in ASCII: a line per rank, time from left to right, dots where a rank
// waits.
//
//   time   0        3        6        9        12
//   rank 0 F0 F1 .. .. .. .. B0--- F2 .. B1--- .. .. B2---
//   rank 1 .. F0 B0--- F1 B1--- ...
//
// A pass is its letter and micro batch, over as many columns as it takes; B of a row BW includes W.
// Chunk 0 has capitals and chunk 1 small letters; with more chunks the number follows: F3'2. F5+B2
// is an overlapped cell. A drawing wider than `width` columns goes on below, line after line.
// Labels are cut, down to nothing, on passes far shorter than the others.
std::string draw_text(const Schedule& schedule, const Simulation& simulation, size_t width);

}  // namespace sevenfold

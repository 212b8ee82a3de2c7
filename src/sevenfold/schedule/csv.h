#pragma once

#include <iosfwd>
#include <string>

#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// PyTorch's schedule files (its "compute only" form): a line per rank, a cell per row, each the
// stage, a letter and the micro batch: 3F7. F is forward, B the whole backward, I backward by
// input, W by weight. Empty cells mean nothing.

// Overlapped cells are written as their F and their B, which every version of PyTorch runs.
// Throws ConfigError for bidirectional schedules: a cell cannot say which of a stage's two ranks it
// means.
void write_csv(std::ostream& out, const Schedule& schedule);

// Also reads (3F7;0B2)OVERLAP_F_B, and passes over what PyTorch adds itself: sends, receives,
// UNSHARD, RESHARD and REDUCE_GRAD. The placement follows from the stages on each rank: linear,
// loop or vee. `name` stands in messages and becomes the schedule's algorithm. The result has been
// validated. Throws DataError with line and cell, or with what is wrong with the schedule.
Schedule read_csv(std::istream& in, const std::string& name);

}  // namespace sevenfold

#pragma once

#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// The eight steps that DualPipe and DualPipeV share, of one rank. A rank works on two directions, 0
// (the one that it sees first) and 1.
struct DualSteps {
  int64_t depth = 1;         // ranks from where direction 0 enters to where the directions meet
  int64_t distance = 0;      // of this rank from there
  int64_t microbatches = 1;  // per direction
  int64_t first_microbatch[2] = {0, 0};
  int64_t chunk[2] = {0, 1};  // of the rank, for each direction
  int64_t flow[2] = {0, 0};
};

void append_dual_steps(Schedule& schedule, int64_t rank, const DualSteps& steps);

}  // namespace sevenfold

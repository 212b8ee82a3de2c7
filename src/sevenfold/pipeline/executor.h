#pragma once

#include <vector>

#include "sevenfold/dist/timeline.h"
#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// Runs one rank's rows of a schedule, each written down in `timeline` unless it is null. One stage
// so far: no sends and receives.
void execute(const std::vector<Row>& rows, Chunk& chunk,
             const std::vector<Microbatch>& microbatches, FaultSet faults,
             Timeline* timeline = nullptr);

}  // namespace sevenfold

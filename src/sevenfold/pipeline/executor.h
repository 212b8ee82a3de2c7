#pragma once

#include <vector>

#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// Runs one rank's rows of a schedule. One stage so far: no sends and receives.
void execute(const std::vector<Row>& rows, Chunk& chunk,
             const std::vector<Microbatch>& microbatches, FaultSet faults);

}  // namespace sevenfold

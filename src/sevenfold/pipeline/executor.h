#pragma once

#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// Runs one rank's rows of a schedule, each written down in the rank's timeline. `reducer` is the
// chunk's. One stage so far: no sends and receives.
void execute(const std::vector<Row>& rows, Chunk& chunk, GradientReducer& reducer,
             const std::vector<Microbatch>& microbatches, const RankContext& rank);

}  // namespace sevenfold

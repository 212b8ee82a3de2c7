#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/schedule/search/problem.h"

namespace sevenfold {

// A building block of a V schedule (arXiv 2405.15362): when the passes of micro batch 0 run on each
// rank, in slots of one pass of one chunk; micro batch m runs `interval` slots later per m.
struct VBlock {
  struct Slots {
    double forward[2] = {0, 0};  // of chunk 0 and 1
    double backward[2] = {0, 0};
  };
  std::vector<Slots> ranks;
  double interval = 6;
};

// How far apart neighbouring ranks run the same pass, and the slots between the four legs of the V.
struct VOffsets {
  double forward[2] = {1, 1};   // down with chunk 0, up with chunk 1
  double backward[2] = {1, 1};  // up the model: chunk 1 from rank 0 to P-1, then chunk 0 back
  double gaps[3] = {1, 1, 1};   // F0 to F1 on rank P-1, F1 to B1 on rank 0, B1 to B0 on rank P-1
};
VBlock v_block(int64_t num_ranks, const VOffsets& offsets, double interval);

// The blocks of the paper's V-Half, V-Min and V-ZB, for B and W apart.
VBlock v_half_block(int64_t num_ranks);
VBlock v_min_block(int64_t num_ranks);
VBlock v_zb_block(int64_t num_ranks);

// All micro batches' passes in the order of their slots, each W in the first slot after its B (or
// any later one) in which its rank has nothing else.
PassOrder repeated(const PassProblem& problem, const VBlock& block);

}  // namespace sevenfold

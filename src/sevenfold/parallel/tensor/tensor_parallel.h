#pragma once

#include <cstdint>

#include "sevenfold/core/faults.h"
#include "sevenfold/dist/communicator.h"

namespace sevenfold {

// Tensor parallelism as a rank sees it (guide, chapter 4): which part of every layer is its own,
// and with whom it exchanges partial results. Copied into the layers; the group outlives them.
struct TensorParallel {
  Communicator* group = nullptr;  // null: this rank holds every layer whole
  // Sequence parallelism (guide, chapter 5): between column- and row-parallel layers each rank
  // holds only its part of the sequence.
  bool sequence = false;
  // Whether collectives of a backward pass are under way while weight gradients are computed. The
  // same bits either way.
  bool overlap = true;
  FaultSet faults;

  int64_t size() const { return group ? group->size() : 1; }
  int64_t rank() const { return group ? group->rank() : 0; }
  bool is_split() const { return size() > 1; }
  bool splits_sequence() const { return sequence && is_split(); }
};

}  // namespace sevenfold

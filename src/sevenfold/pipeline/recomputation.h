#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sevenfold/config/config.h"

namespace sevenfold {

// For each layer of a chunk, the layer from whose input backward runs it forward again: itself, or
// the first of a group of neighbours. Nothing: its activations are kept. Empty: all are kept.
using RecomputationPlan = std::vector<std::optional<size_t>>;

// Where the decoder layers of a chunk stand.
struct DecoderLayers {
  size_t position = 0;   // of the first of them in the chunk (1 behind an embedding)
  int64_t first_id = 0;  // its number in the whole model
  int64_t count = 0;
};

// The chunk's part of what the experiment asks for. Embedding and head are never recomputed: their
// inputs are all that a group could leave out.
RecomputationPlan recomputation_plan(const RecomputeConfig& config, const DecoderLayers& layers);

}  // namespace sevenfold

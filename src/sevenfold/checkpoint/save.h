#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/checkpoint/folder.h"
#include "sevenfold/checkpoint/index.h"
#include "sevenfold/checkpoint/piece.h"
#include "sevenfold/dist/rank_context.h"

namespace sevenfold {

// What one rank holds of a logical tensor.
struct TensorPart {
  std::string name;            // as in CheckpointIndex::tensors
  std::vector<int64_t> shape;  // of the whole tensor
  Piece piece;
  at::Tensor values;               // [piece.size()], contiguous, on the CPU
  std::optional<float> unit = {};  // StoredPiece::unit
};

struct SavedRun {
  RunState run;
  std::string optimizer;      // CheckpointIndex::optimizer
  std::string configuration;  // only rank 0's counts, as with `run`
};

// Writes a checkpoint of what all ranks hold into `folder`: each rank a file of its parts (none if
// it has no elements), rank 0 the index. Together the parts hold every element of every tensor
// once. Returns when it is durable; the values may change after that. Collective over all
// ranks; gives the checkpoint's folder. Throws Error with path and reason: nothing is visible then.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const SavedRun& saved,
                                      const std::vector<TensorPart>& parts,
                                      const Retention& retention, RankContext& rank);

}  // namespace sevenfold

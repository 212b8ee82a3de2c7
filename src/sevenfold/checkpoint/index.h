#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/checkpoint/piece.h"

namespace sevenfold {

// index.json of a checkpoint, format 1 (docs/checkpoints.md): where the run stood, and of every
// logical tensor its shape and where its pieces are, whatever layout wrote them.

// Where a run stands. With the tensors this is all of it: random numbers and data order are
// functions of these counts.
struct RunState {
  int64_t iteration = 0;
  int64_t consumed_samples = 0;
  int64_t stepped_samples = 0;
  int64_t consumed_valid_samples = 0;
  int64_t optimizer_steps = 0;
  double loss_scale = 1.0;
  int64_t steps_without_overflow = 0;
  int64_t overflows_left = 0;  // until the loss scale halves

  bool operator==(const RunState&) const = default;
};

struct StoredPiece {
  Piece piece;
  std::string file;    // beside the index
  std::string tensor;  // its name there; flat
  at::ScalarType type = at::kFloat;
  std::optional<float> unit;  // the values are the stored ones times this power of two
  uint64_t hash = 0;          // XXH3-64 of the bytes
};

struct StoredTensor {
  std::vector<int64_t> shape;  // of the whole
  std::vector<StoredPiece> pieces;

  int64_t num_elements() const;  // of the shape
  // Of all pieces together: as many, if each element is written once.
  int64_t num_stored() const;
};

struct CheckpointIndex {
  RunState run;
  std::string optimizer;      // "adamw", ...: whose states are there; empty: weights alone
  std::string configuration;  // the experiment as it was resolved, YAML
  std::map<std::string, StoredTensor> tensors;
};

// Names of tensors: of a parameter (proof.md) for its weight, in the precision that steps are taken
// in, and NAME/STATE ("model.norm.weight/exp_avg") for an optimizer state.
std::string state_name(const std::string& parameter, std::string_view state);

std::string to_json(const CheckpointIndex& index);
// Throws DataError, naming the file: missing, damaged, of another format.
CheckpointIndex read_index(const std::filesystem::path& path);

// The pieces of one file, as text in its header: {tensor name: {shape, piece}}. The rank that
// writes the index puts it together from these.
using FilePieces = std::map<std::string, StoredTensor>;
std::string to_json(const FilePieces& pieces);
FilePieces file_pieces(const std::string& json);

}  // namespace sevenfold

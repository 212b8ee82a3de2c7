#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/checkpoint/index.h"
#include "sevenfold/checkpoint/piece.h"
#include "sevenfold/checkpoint/safetensors.h"

namespace sevenfold {

// An open checkpoint. Any layout reads the pieces it needs, whatever layout wrote them. Immutable,
// so the ranks of a process share one.
class Checkpoint {
 public:
  // folder: step-00000100. Throws DataError, naming the file: one that is missing, cut short or
  // damaged, as far as that shows without reading the tensors.
  explicit Checkpoint(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointIndex& index() const { return index_; }
  int64_t bytes() const;  // of tensors

  // Reads all tensors once and compares their checksums. Throws DataError, naming file and tensor.
  void check_sums() const;

  // Fills `values` [piece.size()], contiguous and on the CPU, of any type that safetensors_name
  // knows, with a piece of a tensor of that shape; values are converted where the stored type is
  // another. Throws DataError where the tensor is missing, has another shape, or lacks elements.
  struct Wanted {
    std::string name;
    std::vector<int64_t> shape;
    Piece piece;
    at::Tensor values;
  };
  // Gives the largest unit among the stored pieces that it read from (StoredPiece::unit): values
  // divided by it fit in the stored type. Nothing where none had one.
  std::optional<float> read(const Wanted& wanted) const;

 private:
  const StoredTensor& tensor(const Wanted& wanted) const;
  std::span<const std::byte> bytes_of(const StoredPiece& stored) const;

  std::filesystem::path folder_;
  CheckpointIndex index_;
  std::map<std::string, SafetensorsFile> files_;
  // By file and name.
  std::map<std::pair<std::string, std::string>, const SafeTensor*> tensors_;
};

}  // namespace sevenfold

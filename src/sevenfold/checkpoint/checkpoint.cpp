#include "sevenfold/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool is_inside(const Piece& piece, const std::vector<int64_t>& shape) {
  const Slice& slice = piece.slice;
  if (slice.offsets.size() != shape.size() || slice.sizes.size() != shape.size()) return false;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (slice.offsets[dim] < 0 || slice.sizes[dim] < 0 ||
        slice.sizes[dim] > shape[dim] - slice.offsets[dim])
      return false;
  const ElementRange range = piece.range;
  return range.begin >= 0 && range.begin <= range.end && range.end <= slice.num_elements();
}

// Copies what two pieces share. Places and sizes count elements.
void copy_runs(const std::vector<Overlap>& shared, const std::byte* from, std::byte* to,
               size_t element_bytes) {
  for (const Overlap& run : shared)
    std::memcpy(to + static_cast<size_t>(run.to) * element_bytes,
                from + static_cast<size_t>(run.from) * element_bytes,
                static_cast<size_t>(run.size) * element_bytes);
}

int64_t num_shared(const std::vector<Overlap>& shared) {
  int64_t elements = 0;
  for (const Overlap& run : shared) elements += run.size;
  return elements;
}

// The same runs, of which one side lies packed together.
struct Packed {
  std::vector<Overlap> in, out;
};
Packed packed(const std::vector<Overlap>& shared) {
  Packed runs;
  int64_t place = 0;
  for (const Overlap& run : shared) {
    runs.in.push_back({.from = run.from, .to = place, .size = run.size});
    runs.out.push_back({.from = place, .to = run.to, .size = run.size});
    place += run.size;
  }
  return runs;
}

std::byte* data_of(const at::Tensor& values) {
  return static_cast<std::byte*>(values.data_ptr());
}

// Stored elements may lie at any address and are converted all at once.
void convert_runs(const std::vector<Overlap>& shared, const std::byte* from,
                  const StoredPiece& stored, const at::Tensor& values) {
  const Packed runs = packed(shared);
  const at::Tensor raw = at::empty({num_shared(shared)}, at::TensorOptions().dtype(stored.type));
  copy_runs(runs.in, from, data_of(raw), raw.element_size());
  at::Tensor converted = raw;
  if (stored.unit) converted = raw.to(at::kDouble).mul_(static_cast<double>(*stored.unit));
  converted = converted.to(values.scalar_type());
  copy_runs(runs.out, data_of(converted), data_of(values), values.element_size());
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& folder)
    : folder_(folder), index_(read_index(folder / "index.json")) {
  for (const auto& [name, tensor] : index_.tensors) {
    if (tensor.pieces.empty() || tensor.num_stored() != tensor.num_elements())
      raise<DataError>("checkpoint: {}: damaged ({} of the {} elements of {} are there)",
                       (folder / "index.json").string(), tensor.num_stored(), tensor.num_elements(),
                       name);
    for (const StoredPiece& stored : tensor.pieces) {
      if (!is_inside(stored.piece, tensor.shape))
        raise<DataError>("checkpoint: {}: damaged (a piece of {} lies outside its shape {})",
                         (folder / "index.json").string(), name, shape_text(tensor.shape));
      if (!files_.contains(stored.file)) {
        const auto [at, added] = files_.emplace(stored.file, SafetensorsFile(folder / stored.file));
        for (const SafeTensor& in_file : at->second.tensors())
          tensors_[{stored.file, in_file.name}] = &in_file;
      }
      const auto found = tensors_.find({stored.file, stored.tensor});
      if (found == tensors_.end() || found->second->type != stored.type ||
          found->second->shape != std::vector<int64_t>{stored.piece.size()})
        raise<DataError>("checkpoint: {}: it does not hold the piece of {} that the index says",
                         (folder / stored.file).string(), name);
    }
  }
}

int64_t Checkpoint::bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : index_.tensors)
    for (const StoredPiece& stored : tensor.pieces)
      bytes += static_cast<int64_t>(bytes_of(stored).size());
  return bytes;
}

std::span<const std::byte> Checkpoint::bytes_of(const StoredPiece& stored) const {
  return tensors_.at({stored.file, stored.tensor})->bytes;
}

void Checkpoint::check_sums() const {
  for (const auto& [name, tensor] : index_.tensors) {
    for (const StoredPiece& stored : tensor.pieces) {
      const auto bytes = bytes_of(stored);
      if (XXH3_64bits(bytes.data(), bytes.size()) == stored.hash) continue;
      raise<DataError>(
          "checkpoint: {}: damaged (the checksum of {} is another); take an earlier checkpoint "
          "with --resume PATH, or a copy of the file",
          (folder_ / stored.file).string(), name);
    }
  }
}

const StoredTensor& Checkpoint::tensor(const Wanted& wanted) const {
  const auto found = index_.tensors.find(wanted.name);
  if (found == index_.tensors.end())
    raise<DataError>("checkpoint: {} has no tensor {}", folder_.string(), wanted.name);
  if (found->second.shape != wanted.shape)
    raise<DataError>("checkpoint: {}: {} has shape {} there and {} in the model", folder_.string(),
                     wanted.name, shape_text(found->second.shape), shape_text(wanted.shape));
  return found->second;
}

std::optional<float> Checkpoint::read(const Wanted& wanted) const {
  const StoredTensor& stored = tensor(wanted);
  const std::vector<PieceRun> runs = runs_of(wanted.piece, wanted.shape);
  std::optional<float> unit;
  int64_t filled = 0;
  for (const StoredPiece& piece : stored.pieces) {
    const auto shared = overlaps(runs_of(piece.piece, wanted.shape), runs);
    if (shared.empty()) continue;
    filled += num_shared(shared);
    if (piece.unit) unit = std::max(unit.value_or(0.0F), *piece.unit);
    const std::byte* from = bytes_of(piece).data();
    if (piece.type == wanted.values.scalar_type() && !piece.unit) {
      copy_runs(shared, from, data_of(wanted.values), wanted.values.element_size());
    } else {
      convert_runs(shared, from, piece, wanted.values);
    }
  }
  if (filled != wanted.piece.size())
    raise<DataError>("checkpoint: {}: {} of the {} elements of {} that a rank needs are there",
                     folder_.string(), filled, wanted.piece.size(), wanted.name);
  return unit;
}

}  // namespace sevenfold

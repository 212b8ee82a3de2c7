#include "sevenfold/checkpoint/save.h"

#include <ATen/ATen.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sevenfold/checkpoint/safetensors.h"
#include "sevenfold/core/atomic_file.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPiecesKey = "sevenfold.pieces";

std::string file_name(int64_t rank) {
  return fmt::format("rank-{:05}.safetensors", rank);
}

std::span<const std::byte> bytes_of(const at::Tensor& values) {
  return {static_cast<const std::byte*>(values.data_ptr()), values.nbytes()};
}

// The rank's file; none where it has nothing to write.
void write_parts(const fs::path& folder, const std::vector<TensorPart>& parts, int64_t rank) {
  std::vector<SafeTensor> tensors;
  FilePieces pieces;
  for (const TensorPart& part : parts) {
    SEVENFOLD_CHECK(part.values.is_contiguous() && part.values.numel() == part.piece.size(),
                    "{}: {} values for {} elements", part.name, part.values.numel(),
                    part.piece.size());
    if (part.piece.size() == 0) continue;
    const auto bytes = bytes_of(part.values);
    tensors.push_back({.name = part.name,
                       .type = part.values.scalar_type(),
                       .shape = {part.piece.size()},
                       .bytes = bytes});
    pieces[part.name] = {.shape = part.shape,
                         .pieces = {{.piece = part.piece,
                                     .file = file_name(rank),
                                     .tensor = part.name,
                                     .type = part.values.scalar_type(),
                                     .unit = part.unit,
                                     .hash = XXH3_64bits(bytes.data(), bytes.size())}}};
  }
  if (tensors.empty()) return;
  write_safetensors(folder / file_name(rank), tensors, {{kPiecesKey, to_json(pieces)}});
}

// From the headers of all files, so that ranks need to tell each other nothing.
void write_index(const fs::path& folder, const SavedRun& saved, int64_t num_ranks) {
  CheckpointIndex index{.run = saved.run,
                        .optimizer = saved.optimizer,
                        .configuration = saved.configuration,
                        .tensors = {}};
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    if (!fs::exists(folder / file_name(rank))) continue;
    const SafetensorsFile file(folder / file_name(rank));
    for (auto& [name, part] : file_pieces(file.metadata().at(kPiecesKey))) {
      StoredTensor& tensor = index.tensors[name];
      SEVENFOLD_CHECK(tensor.shape.empty() || tensor.shape == part.shape,
                      "{}: ranks write pieces of tensors of different shapes", name);
      tensor.shape = part.shape;
      std::move(part.pieces.begin(), part.pieces.end(), std::back_inserter(tensor.pieces));
    }
  }
  // A layout that writes an element twice or never is found now, not when the file is needed.
  for (const auto& [name, tensor] : index.tensors)
    SEVENFOLD_CHECK(tensor.num_stored() == tensor.num_elements(),
                    "{}: {} of {} elements are written", name, tensor.num_stored(),
                    tensor.num_elements());
  write_file_atomically(folder / "index.json", to_json(index));
}

}  // namespace

fs::path save_checkpoint(const fs::path& folder, const SavedRun& saved,
                         const std::vector<TensorPart>& parts, const Retention& retention,
                         RankContext& rank) {
  Communicator& world = rank.group("world");
  const int64_t step = saved.run.iteration;
  if (rank.rank == 0) begin_checkpoint(folder, step);
  world.barrier();
  const fs::path partial = partial_folder(folder, step);
  write_parts(partial, parts, rank.rank);
  world.barrier();
  if (rank.rank == 0) {
    write_index(partial, saved, world.size());
    publish_checkpoint(folder, step, retention);
  }
  world.barrier();
  return folder / step_folder_name(step);
}

}  // namespace sevenfold

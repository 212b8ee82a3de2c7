#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sevenfold/mesh/mesh.h"

namespace sevenfold {

// How one logical parameter lies on the mesh. Declared once; initialisation, gradient reduction,
// gradient norm, optimizer shards and checkpoints derive from it.
struct AxisPlacement {
  Axis axis = Axis::kTp;
  // Dimension of the global shape that this axis cuts; -1: replicated along the axis.
  int64_t dim = -1;
  // More than one: neighbouring ranks hold copies of a slice (fewer KV heads than ranks).
  int64_t copies = 1;
  // This rank's gradient covers only its tokens or heads, so it is to be summed over the axis (over
  // the copies where the axis cuts the tensor).
  bool partial_gradient = false;
  // Whether parts may differ by one (rows of a vocabulary that does not divide, never padded).
  bool is_uneven = false;
};

enum class MeshView : uint8_t { kDense, kExpert };

struct ShardSpec {
  std::vector<int64_t> global_shape;  // without padding
  MeshView view = MeshView::kDense;
  std::vector<AxisPlacement>
      placements;  // axes of the view that are not named replicate, gradients equal
  // pp coordinates, ascending; two: a tied table with its ends on two ranks, twins of a stage.
  std::vector<int64_t> owners = {0};

  int64_t num_elements() const;
};

// Offset and size of this rank's part of the global tensor, per dimension.
struct Slice {
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes;
  int64_t num_elements() const;
};

// Throws InternalError if an axis that is not uneven does not divide its dimension (rules in
// config/ refuse that earlier).
Slice local_slice(const ShardSpec& spec, const Mesh& mesh, const Coordinates& at);

// Axes whose ranks each hold part of the gradient of the same elements, in mesh order.
std::vector<Axis> gradient_sum_axes(const ShardSpec& spec);

// The group inside a tensor-parallel group over which this rank's gradient is summed: "tp" where
// every rank holds the whole tensor, "tp-copies" where neighbours hold copies of a slice, empty
// where the gradient is complete or the tensor is not copied.
std::string tensor_sum_group(const ShardSpec& spec);

// The group of the ranks that hold this part of the tensor on other pipeline ranks, over which its
// gradient is summed after the data-parallel sum: "embedding" or "pp-twins"; empty with one owner.
std::string owner_group(const ShardSpec& spec);

// The groups whose members hold the same bits of the parameter after every step: "dp-cp", the owner
// group, and "tp" or "tp-copies" where the tensor-parallel ranks, or some of them, hold copies.
std::vector<std::string> replica_groups(const ShardSpec& spec);

// Whether this rank counts its elements in a sum over the model-parallel group (all axes but dp and
// cp), so that each logical element counts once: the lowest of the ranks that hold a copy does.
bool counts_in_norm(const ShardSpec& spec, const Mesh& mesh, const Coordinates& at);

// Spec of a parameter that every rank holds whole; its gradient is partial over dp and cp.
ShardSpec replicated_spec(std::vector<int64_t> global_shape);

}  // namespace sevenfold

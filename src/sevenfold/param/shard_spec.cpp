#include "sevenfold/param/shard_spec.h"

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

int64_t product(const std::vector<int64_t>& values) {
  int64_t result = 1;
  for (const int64_t value : values) result *= value;
  return result;
}

int64_t coordinate(const Coordinates& at, Axis axis) {
  return at[static_cast<size_t>(axis)];
}

}  // namespace

int64_t ShardSpec::num_elements() const {
  return product(global_shape);
}

int64_t Slice::num_elements() const {
  return product(sizes);
}

Slice local_slice(const ShardSpec& spec, const Mesh& mesh, const Coordinates& at) {
  Slice slice{std::vector<int64_t>(spec.global_shape.size(), 0), spec.global_shape};
  for (const AxisPlacement& placement : spec.placements) {
    if (placement.dim < 0) continue;
    const auto dim = static_cast<size_t>(placement.dim);
    const int64_t parts = mesh.shape().degree(placement.axis) / placement.copies;
    const int64_t size = slice.sizes[dim];
    SEVENFOLD_CHECK(parts > 0 && (placement.is_uneven || size % parts == 0),
                    "{} parts of {} along {}", parts, size, axis_name(placement.axis));
    const int64_t part = coordinate(at, placement.axis) / placement.copies;
    const int64_t begin = size * part / parts;
    slice.sizes[dim] = size * (part + 1) / parts - begin;
    slice.offsets[dim] += begin;
  }
  return slice;
}

std::vector<Axis> gradient_sum_axes(const ShardSpec& spec) {
  std::vector<Axis> axes;
  for (const AxisPlacement& placement : spec.placements)
    if (placement.partial_gradient) axes.push_back(placement.axis);
  return axes;
}

std::string tensor_sum_group(const ShardSpec& spec) {
  for (const AxisPlacement& placement : spec.placements)
    if (placement.axis == Axis::kTp && placement.partial_gradient)
      return placement.dim < 0 ? "tp" : "tp-copies";
  return "";
}

std::string owner_group(const ShardSpec& spec) {
  if (spec.owners.size() < 2) return "";
  SEVENFOLD_CHECK_EQ(spec.owners.size(), 2U);
  // Of two owners, one the mirror image of the other, rank 0 goes with the last one.
  return spec.owners.front() == 0 ? "embedding" : "pp-twins";
}

std::vector<std::string> replica_groups(const ShardSpec& spec) {
  std::string among_tp = "tp";
  for (const AxisPlacement& placement : spec.placements)
    if (placement.axis == Axis::kTp && placement.dim >= 0)
      among_tp = placement.copies > 1 ? "tp-copies" : "";
  std::vector<std::string> groups = {"dp-cp"};
  if (!among_tp.empty()) groups.push_back(among_tp);
  if (spec.owners.size() > 1) groups.push_back(owner_group(spec));
  return groups;
}

bool counts_in_norm(const ShardSpec& spec, const Mesh& mesh, const Coordinates& at) {
  // Along every model-parallel axis that does not cut the tensor, and among the copies of one that
  // does, only the first rank counts. dp and cp hold equal gradients by the time the norm is taken.
  const std::vector<Axis> model_axes =
      spec.view == MeshView::kDense ? std::vector{Axis::kTp} : std::vector{Axis::kEtp, Axis::kEp};
  for (const Axis axis : model_axes) {
    int64_t copies = mesh.shape().degree(axis);
    for (const AxisPlacement& placement : spec.placements)
      if (placement.axis == axis && placement.dim >= 0) copies = placement.copies;
    if (coordinate(at, axis) % copies != 0) return false;
  }
  return coordinate(at, Axis::kPp) == spec.owners.front();
}

ShardSpec replicated_spec(std::vector<int64_t> global_shape) {
  ShardSpec spec;
  spec.global_shape = std::move(global_shape);
  spec.placements = {{.axis = Axis::kCp, .partial_gradient = true},
                     {.axis = Axis::kDp, .partial_gradient = true}};
  return spec;
}

}  // namespace sevenfold

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sevenfold/mesh/shape.h"

namespace sevenfold {

using Coordinates = std::array<int64_t, kNumAxes>;  // indexed by Axis

// One group of ranks that differ in the coordinates of some axes only, members ascending.
struct RankGroup {
  std::string name;  // "dp", "dp-cp", ...
  std::vector<int64_t> ranks;
};

// The ranks of a run laid out on the axes of a MeshShape. Pure arithmetic; immutable.
class Mesh {
 public:
  // Throws InternalError when the degrees do not fit together (check_shape).
  explicit Mesh(const MeshShape& shape);

  const MeshShape& shape() const { return shape_; }
  int64_t world_size() const { return shape_.world_size(); }
  Coordinates coordinates(int64_t rank) const;  // of both views
  int64_t rank(int64_t tp, int64_t cp, int64_t dp, int64_t pp) const;

  // All groups over the named axes, e.g. {kDp, kCp}: every rank is in exactly one. Groups are
  // enumerated by their remaining coordinates in the order of the mesh; the axes must be of one
  // view.
  std::vector<RankGroup> groups(const std::vector<Axis>& axes) const;
  // The member lists that a run creates eagerly, in a fixed order: name ("tp", "dp-cp", ...) and
  // groups. "tp-copies", the runs of tp_copies neighbours, only where that is above 1; only where
  // dp_replicate is: "dp-shard-cp" (the ranks that share one set of ZeRO shards), "dp-replicate"
  // (those that hold the same shard) and "one-replica" (all ranks of the sets at one place, so that
  // each shard of the model is in it once). "embedding"
  // holds the first and last rank of each pp group, "position-embedding" the first alone; these two
  // leave the ranks of the middle stages out. "pp-twins" holds ranks r and P-1-r of each pp group,
  // which have the same stages in bidirectional schedules; only where P is even.
  std::vector<std::pair<std::string, std::vector<RankGroup>>> standard_groups() const;

  int64_t num_nodes() const;
  int64_t node(int64_t rank) const { return rank / shape_.ranks_per_node; }
  // True if some group over this axis spans two nodes.
  bool crosses_nodes(Axis axis) const;

 private:
  // Axes of one view, fastest first, and how far apart neighbours on an axis are in rank numbers.
  struct View {
    std::array<Axis, 4> axes;
    std::array<int64_t, 4> strides;
  };
  static View make_view(const MeshShape& shape, const std::array<Axis, 4>& axes);
  const View& view_of(const std::vector<Axis>& axes) const;

  MeshShape shape_;
  View dense_;
  View expert_;
};

// The ranks that each own one ZeRO shard of what they hold the same part of: "dp-cp", or with
// several sets of shards "dp-shard-cp".
std::string shard_group(const MeshShape& shape);

}  // namespace sevenfold

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sevenfold {

// Axes of the device mesh. Dense view, fastest first: tp, cp, dp, pp. Expert view of the same ranks:
// etp, ep, edp, pp. (Megatron's RankGenerator; TorchTitan's order is another permutation.)
enum class Axis : uint8_t { kTp, kCp, kDp, kPp, kEtp, kEp, kEdp };
inline constexpr int kNumAxes = 7;

std::string_view axis_name(Axis axis);  // "tp", "cp", ...
// Throws ConfigError for an unknown name.
Axis parse_axis(std::string_view name);

// Degrees of a layout. Dense: world = tp * cp * dp * pp. Expert: world = etp * ep * edp * pp.
struct MeshShape {
  int64_t tp = 1;
  int64_t cp = 1;
  int64_t dp = 1;
  int64_t pp = 1;
  int64_t etp = 1;
  int64_t ep = 1;
  bool tp_pp_dp_mapping = false;  // use_tp_pp_dp_mapping: rank order tp-cp-ep-pp-dp
  int64_t ranks_per_node = 8;

  int64_t world_size() const { return tp * cp * dp * pp; }
  int64_t edp() const { return world_size() / (etp * ep * pp); }
  int64_t degree(Axis axis) const;
};

using Coordinates = std::array<int64_t, kNumAxes>;  // indexed by Axis

// One group of ranks that differ in the coordinates of some axes only, members ascending.
struct RankGroup {
  std::string name;  // "dp", "dp-cp", ...
  std::vector<int64_t> ranks;
};

// The ranks of a run laid out on the axes of a MeshShape. Pure arithmetic; immutable.
class Mesh {
 public:
  // Throws ConfigError, in the user's key names and with the product and the world size, when the degrees
  // do not fit together.
  explicit Mesh(const MeshShape& shape);

  const MeshShape& shape() const { return shape_; }
  int64_t world_size() const { return shape_.world_size(); }
  Coordinates coordinates(int64_t rank) const;
  int64_t rank(int64_t tp, int64_t cp, int64_t dp, int64_t pp) const;

  // All groups over the named axes, e.g. {kDp, kCp}: every rank is in exactly one. Groups are enumerated by
  // their remaining coordinates in the order of the mesh; the axes must be of one view.
  std::vector<RankGroup> groups(const std::vector<Axis>& axes) const;
  // The member lists that a run creates eagerly, in a fixed order: name ("tp", "dp-cp", ...) and groups.
  std::vector<std::pair<std::string, std::vector<RankGroup>>> standard_groups() const;

  int64_t num_nodes() const;
  int64_t node(int64_t rank) const { return rank / shape_.ranks_per_node; }
  // True if some group over this axis spans two nodes.
  bool crosses_nodes(Axis axis) const;

 private:
  MeshShape shape_;
};

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <string_view>

namespace sevenfold {

// Axes of the device mesh. Dense view, fastest first: tp, cp, dp, pp. Expert view of the same
// ranks: etp, ep, edp, pp. (Megatron's RankGenerator; TorchTitan's order is another permutation.)
enum class Axis : uint8_t { kTp, kCp, kDp, kPp, kEtp, kEp, kEdp };
inline constexpr int kNumAxes = 7;

std::string_view axis_name(Axis axis);  // "tp", "cp", ...

// Degrees of a layout. Dense: world = tp * cp * dp * pp. Expert: world = etp * ep * edp * pp.
struct MeshShape {
  int64_t tp = 1;
  int64_t cp = 1;
  int64_t dp = 1;
  int64_t pp = 1;
  int64_t etp = 1;
  int64_t ep = 1;
  // Neighbouring tp ranks that hold the same keys and values: tp / (KV heads) where there are fewer
  // KV heads than ranks, else 1.
  int64_t tp_copies = 1;
  // Hybrid sharding: sets of ZeRO shards. Each lies on (dp * cp) / dp_replicate neighbours of a
  // dp-cp group, and ranks at the same place of their sets hold the same shard.
  int64_t dp_replicate = 1;
  bool tp_pp_dp_mapping = false;  // use_tp_pp_dp_mapping: rank order tp-cp-ep-pp-dp
  int64_t ranks_per_node = 8;

  int64_t world_size() const { return tp * cp * dp * pp; }
  int64_t dp_shard_cp() const { return dp * cp / dp_replicate; }  // ranks that share one set
  int64_t edp() const { return world_size() / (etp * ep * pp); }
  int64_t degree(Axis axis) const;
};

// The most ranks that a mesh can have; keeps every product of degrees far from overflow.
inline constexpr int64_t kMaxWorldSize = int64_t{1} << 24;

// Throws InternalError when a degree is out of range or the degrees do not fit together. A Mesh
// checks its shape with this; what a user set wrong is told before, by the rules of config/.
void check_shape(const MeshShape& shape);

}  // namespace sevenfold

#include "sevenfold/mesh/mesh.h"

#include <algorithm>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

bool is_expert_axis(Axis axis) {
  return axis == Axis::kEtp || axis == Axis::kEp || axis == Axis::kEdp;
}

std::string join_names(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis axis : axes)
    text += fmt::format("{}{}", text.empty() ? "" : "-", axis_name(axis));
  return text;
}

// First and last rank of each pipeline (one rank when they coincide), or the first alone.
std::vector<RankGroup> pipeline_ends(const std::vector<RankGroup>& pipelines,
                                     const std::string& name, bool with_last) {
  std::vector<RankGroup> ends;
  for (const RankGroup& pipeline : pipelines) {
    RankGroup group{name, {pipeline.ranks.front()}};
    if (with_last && pipeline.ranks.size() > 1) group.ranks.push_back(pipeline.ranks.back());
    ends.push_back(std::move(group));
  }
  return ends;
}

// The first rank of each pipeline with the last, the second with the last but one, and so on.
std::vector<RankGroup> twins_of(const std::vector<RankGroup>& pipelines) {
  std::vector<RankGroup> twins;
  for (const RankGroup& pipeline : pipelines)
    for (size_t r = 0; r < pipeline.ranks.size() / 2; ++r)
      twins.push_back({"pp-twins", {pipeline.ranks[r], *(pipeline.ranks.rbegin() + r)}});
  return twins;
}

// Each group cut into runs of `length` neighbours.
std::vector<RankGroup> runs_of(const std::vector<RankGroup>& groups, int64_t length,
                               const std::string& name) {
  std::vector<RankGroup> runs;
  for (const RankGroup& group : groups)
    for (auto first = group.ranks.begin(); first != group.ranks.end(); first += length)
      runs.push_back({name, {first, first + length}});
  return runs;
}

// Of each group, the members at the same place of its runs of `length` neighbours.
std::vector<RankGroup> across_runs(const std::vector<RankGroup>& groups, int64_t length,
                                   const std::string& name) {
  std::vector<RankGroup> across;
  for (const RankGroup& group : groups)
    for (int64_t place = 0; place < length; ++place) {
      across.push_back({name, {}});
      for (auto at = static_cast<size_t>(place); at < group.ranks.size();
           at += static_cast<size_t>(length))
        across.back().ranks.push_back(group.ranks[at]);
    }
  return across;
}

// The first runs of `length` neighbours of all groups together, then the second ones, ...
std::vector<RankGroup> runs_together(const std::vector<RankGroup>& groups, int64_t length,
                                     const std::string& name) {
  std::vector<RankGroup> together;
  for (const RankGroup& group : groups)
    for (size_t at = 0; at < group.ranks.size(); ++at) {
      const size_t run = at / static_cast<size_t>(length);
      if (run == together.size()) together.push_back({name, {}});
      together[run].ranks.push_back(group.ranks[at]);
    }
  for (RankGroup& group : together) std::sort(group.ranks.begin(), group.ranks.end());
  return together;
}

}  // namespace

Mesh::View Mesh::make_view(const MeshShape& shape, const std::array<Axis, 4>& axes) {
  View view{axes, {}};
  int64_t stride = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    view.strides[i] = stride;
    stride *= shape.degree(axes[i]);
  }
  SEVENFOLD_CHECK_EQ(stride, shape.world_size());
  return view;
}

Mesh::Mesh(const MeshShape& shape) : shape_(shape) {
  check_shape(shape);
  if (shape.tp_pp_dp_mapping) {
    dense_ = make_view(shape, {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp});
    expert_ = make_view(shape, {Axis::kEtp, Axis::kEp, Axis::kPp, Axis::kEdp});
  } else {
    dense_ = make_view(shape, {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp});
    expert_ = make_view(shape, {Axis::kEtp, Axis::kEp, Axis::kEdp, Axis::kPp});
  }
  // A stage must hold its dense and its expert weights on the same ranks.
  for (size_t i = 0; i < dense_.axes.size(); ++i)
    if (dense_.axes[i] == Axis::kPp && shape.pp > 1)
      SEVENFOLD_CHECK_EQ(dense_.strides[i], expert_.strides[i]);
}

Coordinates Mesh::coordinates(int64_t rank) const {
  SEVENFOLD_CHECK(rank >= 0 && rank < world_size(), "rank {} of {}", rank, world_size());
  Coordinates coordinates{};
  for (const View* view : {&dense_, &expert_})
    for (size_t i = 0; i < view->axes.size(); ++i)
      coordinates[static_cast<size_t>(view->axes[i])] =
          rank / view->strides[i] % shape_.degree(view->axes[i]);
  return coordinates;
}

int64_t Mesh::rank(int64_t tp, int64_t cp, int64_t dp, int64_t pp) const {
  Coordinates wanted{};
  wanted[static_cast<size_t>(Axis::kTp)] = tp;
  wanted[static_cast<size_t>(Axis::kCp)] = cp;
  wanted[static_cast<size_t>(Axis::kDp)] = dp;
  wanted[static_cast<size_t>(Axis::kPp)] = pp;
  int64_t rank = 0;
  for (size_t i = 0; i < dense_.axes.size(); ++i) {
    const Axis axis = dense_.axes[i];
    const int64_t coordinate = wanted[static_cast<size_t>(axis)];
    SEVENFOLD_CHECK(coordinate >= 0 && coordinate < shape_.degree(axis), "{}={} of {}",
                    axis_name(axis), coordinate, shape_.degree(axis));
    rank += coordinate * dense_.strides[i];
  }
  return rank;
}

const Mesh::View& Mesh::view_of(const std::vector<Axis>& axes) const {
  bool has_dense = false;
  bool has_expert = false;
  for (const Axis axis : axes) {
    if (is_expert_axis(axis))
      has_expert = true;
    else if (axis != Axis::kPp)
      has_dense = true;
  }
  SEVENFOLD_CHECK(!(has_dense && has_expert), "{} mixes the dense and the expert view",
                  join_names(axes));
  return has_expert ? expert_ : dense_;
}

std::vector<RankGroup> Mesh::groups(const std::vector<Axis>& axes) const {
  const View& view = view_of(axes);
  int64_t group_size = 1;
  for (const Axis axis : axes) group_size *= shape_.degree(axis);
  std::vector<RankGroup> groups(static_cast<size_t>(world_size() / group_size));
  const std::string name = join_names(axes);
  for (RankGroup& group : groups) {
    group.name = name;
    group.ranks.reserve(static_cast<size_t>(group_size));
  }
  for (int64_t rank = 0; rank < world_size(); ++rank) {  // ascending, so members are too
    int64_t index = 0;
    int64_t stride = 1;
    for (size_t i = 0; i < view.axes.size(); ++i) {
      const Axis axis = view.axes[i];
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
      index += stride * (rank / view.strides[i] % shape_.degree(axis));
      stride *= shape_.degree(axis);
    }
    groups[static_cast<size_t>(index)].ranks.push_back(rank);
  }
  return groups;
}

std::vector<std::pair<std::string, std::vector<RankGroup>>> Mesh::standard_groups() const {
  using enum Axis;
  static const std::vector<std::vector<Axis>> kDense = {
      {kTp}, {kCp}, {kDp}, {kDp, kCp}, {kPp}, {kTp, kPp}, {kTp, kCp}, {kTp, kDp, kCp}};
  static const std::vector<std::vector<Axis>> kExpert = {
      {kEp}, {kEtp}, {kEtp, kEp}, {kEtp, kEp, kPp}, {kEdp}};
  std::vector<std::pair<std::string, std::vector<RankGroup>>> result;
  for (const auto& axes : kDense) result.emplace_back(join_names(axes), groups(axes));
  if (shape_.tp_copies > 1)
    result.emplace_back("tp-copies", runs_of(groups({kTp}), shape_.tp_copies, "tp-copies"));
  if (shape_.dp_replicate > 1) {
    const std::vector<RankGroup> owners = groups({kDp, kCp});
    const int64_t length = shape_.dp_shard_cp();
    result.emplace_back("dp-shard-cp", runs_of(owners, length, "dp-shard-cp"));
    result.emplace_back("dp-replicate", across_runs(owners, length, "dp-replicate"));
    result.emplace_back("one-replica", runs_together(owners, length, "one-replica"));
  }
  const std::vector<RankGroup> pipelines = groups({kPp});
  result.emplace_back("embedding", pipeline_ends(pipelines, "embedding", true));
  result.emplace_back("position-embedding", pipeline_ends(pipelines, "position-embedding", false));
  if (shape_.pp % 2 == 0) result.emplace_back("pp-twins", twins_of(pipelines));
  for (const auto& axes : kExpert) result.emplace_back(join_names(axes), groups(axes));
  return result;
}

std::string shard_group(const MeshShape& shape) {
  return shape.dp_replicate > 1 ? "dp-shard-cp" : "dp-cp";
}

int64_t Mesh::num_nodes() const {
  return (world_size() + shape_.ranks_per_node - 1) / shape_.ranks_per_node;
}

bool Mesh::crosses_nodes(Axis axis) const {
  if (shape_.degree(axis) == 1) return false;
  const std::vector<RankGroup> all = groups({axis});
  return std::any_of(all.begin(), all.end(), [this](const RankGroup& group) {
    return node(group.ranks.front()) != node(group.ranks.back());
  });
}

}  // namespace sevenfold

#include "sevenfold/mesh/mesh.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using testing::ElementsAre;

const MeshShape kShapes[] = {
    {},
    {.dp = 4},
    {.tp = 2, .cp = 2, .dp = 2, .pp = 2, .etp = 2},
    {.tp = 2, .dp = 4, .pp = 2, .etp = 1, .ep = 4},
    {.tp = 2, .cp = 2, .dp = 2, .pp = 3, .etp = 2, .ep = 2, .tp_pp_dp_mapping = true},
    {.tp = 3, .cp = 1, .dp = 5, .pp = 2, .etp = 1, .ep = 5},
};

int64_t at(const Coordinates& coordinates, Axis axis) {
  return coordinates[static_cast<size_t>(axis)];
}

TEST(Mesh, DenseCoordinatesLeadBackToTheRank) {
  for (const MeshShape& shape : kShapes) {
    const Mesh mesh(shape);
    for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
      const Coordinates c = mesh.coordinates(rank);
      EXPECT_EQ(mesh.rank(at(c, Axis::kTp), at(c, Axis::kCp), at(c, Axis::kDp), at(c, Axis::kPp)),
                rank);
    }
  }
}

TEST(Mesh, ExpertCoordinatesTellRanksApart) {
  for (const MeshShape& shape : kShapes) {
    const Mesh mesh(shape);
    std::set<std::vector<int64_t>> seen;
    for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
      const Coordinates c = mesh.coordinates(rank);
      seen.insert({at(c, Axis::kEtp), at(c, Axis::kEp), at(c, Axis::kEdp), at(c, Axis::kPp)});
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), mesh.world_size());
  }
}

TEST(Mesh, GroupsOfEveryAxisHoldEveryRankOnceAscending) {
  for (const MeshShape& shape : kShapes) {
    const Mesh mesh(shape);
    for (int index = 0; index < kNumAxes; ++index) {
      const auto axis = static_cast<Axis>(index);
      std::vector<int64_t> all;
      for (const RankGroup& group : mesh.groups({axis})) {
        EXPECT_EQ(static_cast<int64_t>(group.ranks.size()), shape.degree(axis));
        EXPECT_TRUE(std::is_sorted(group.ranks.begin(), group.ranks.end()));
        // Members differ in this axis and count up in it.
        for (size_t i = 0; i < group.ranks.size(); ++i)
          EXPECT_EQ(at(mesh.coordinates(group.ranks[i]), axis), static_cast<int64_t>(i));
        all.insert(all.end(), group.ranks.begin(), group.ranks.end());
      }
      std::sort(all.begin(), all.end());
      for (int64_t rank = 0; rank < mesh.world_size(); ++rank)
        EXPECT_EQ(all[static_cast<size_t>(rank)], rank);
    }
  }
}

TEST(Mesh, GroupOverNoAxisIsEachRankAlone) {
  const Mesh mesh({.tp = 2, .dp = 2, .etp = 2});
  const std::vector<RankGroup> groups = mesh.groups({});
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_THAT(groups[3].ranks, ElementsAre(3));
}

TEST(Mesh, AxesOfTwoViewsInOneGroupAreRefused) {
  const Mesh mesh({.tp = 2, .dp = 2, .etp = 2});
  EXPECT_THROW(mesh.groups({Axis::kDp, Axis::kEp}), InternalError);
  EXPECT_NO_THROW(mesh.groups({Axis::kPp, Axis::kEp}));  // pp belongs to both
}

TEST(Mesh, RanksAndCoordinatesOutsideAreRefused) {
  const Mesh mesh({.tp = 2, .dp = 2, .etp = 2});
  EXPECT_THROW(mesh.coordinates(-1), InternalError);
  EXPECT_THROW(mesh.coordinates(4), InternalError);
  EXPECT_THROW(mesh.rank(2, 0, 0, 0), InternalError);
}

TEST(Mesh, EmbeddingGroupLeavesTheMiddleStagesOut) {
  const Mesh mesh({.tp = 2, .pp = 3, .etp = 2});
  for (const auto& [name, groups] : mesh.standard_groups()) {
    if (name == "embedding") {
      ASSERT_EQ(groups.size(), 2u);
      EXPECT_THAT(groups[0].ranks, ElementsAre(0, 4));
      EXPECT_THAT(groups[1].ranks, ElementsAre(1, 5));
    }
    if (name == "position-embedding") {
      EXPECT_THAT(groups[1].ranks, ElementsAre(1));
    }
  }
}

TEST(Mesh, StandardGroupsComeInAFixedOrder) {
  std::vector<std::string> names;
  for (const auto& [name, groups] : Mesh({.dp = 2}).standard_groups()) {
    names.push_back(name);
    for (const RankGroup& group : groups) EXPECT_EQ(group.name, name);
  }
  EXPECT_THAT(
      names, ElementsAre("tp", "cp", "dp", "dp-cp", "pp", "tp-pp", "tp-cp", "tp-dp-cp", "embedding",
                         "position-embedding", "ep", "etp", "etp-ep", "etp-ep-pp", "edp"));
}

TEST(Mesh, CopiesOfKeysAndValuesAreHeldByNeighbours) {
  for (const auto& [name, groups] :
       Mesh({.tp = 4, .dp = 2, .etp = 4, .tp_copies = 2}).standard_groups()) {
    if (name != "tp-copies") continue;
    ASSERT_EQ(groups.size(), 4u);
    EXPECT_THAT(groups[0].ranks, ElementsAre(0, 1));
    EXPECT_THAT(groups[1].ranks, ElementsAre(2, 3));
    EXPECT_THAT(groups[3].ranks, ElementsAre(6, 7));
    return;
  }
  FAIL() << "no group of copies";
}

std::vector<std::vector<int64_t>> ranks_of(const Mesh& mesh, const std::string& name) {
  std::vector<std::vector<int64_t>> ranks;
  for (const auto& [each, groups] : mesh.standard_groups())
    if (each == name)
      for (const RankGroup& group : groups) ranks.push_back(group.ranks);
  return ranks;
}

TEST(Mesh, SetsOfShardsLieOnNeighbours) {
  const Mesh mesh({.tp = 2, .dp = 4, .etp = 2, .dp_replicate = 2});
  EXPECT_EQ(mesh.shape().dp_shard_cp(), 2);
  EXPECT_THAT(ranks_of(mesh, "dp-shard-cp"), ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6),
                                                         ElementsAre(1, 3), ElementsAre(5, 7)));
  EXPECT_THAT(ranks_of(mesh, "dp-replicate"), ElementsAre(ElementsAre(0, 4), ElementsAre(2, 6),
                                                          ElementsAre(1, 5), ElementsAre(3, 7)));
  EXPECT_THAT(ranks_of(mesh, "one-replica"),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_EQ(shard_group(mesh.shape()), "dp-shard-cp");
}

// HSDP of two sets over dp_shard 2 x cp 2, and tp 2: TorchTitan's groups.
TEST(Mesh, ContextParallelRanksShareASetToo) {
  const Mesh mesh({.tp = 2, .cp = 2, .dp = 4, .etp = 2, .dp_replicate = 2});
  EXPECT_THAT(ranks_of(mesh, "dp-shard-cp"),
              ElementsAre(ElementsAre(0, 2, 4, 6), ElementsAre(8, 10, 12, 14),
                          ElementsAre(1, 3, 5, 7), ElementsAre(9, 11, 13, 15)));
  EXPECT_THAT(ranks_of(mesh, "dp-replicate"), testing::Contains(ElementsAre(7, 15)));
}

TEST(Mesh, OneSetOfShardsNeedsNoGroupsOfItsOwn) {
  const Mesh mesh({.dp = 4});
  EXPECT_TRUE(ranks_of(mesh, "dp-shard-cp").empty());
  EXPECT_EQ(shard_group(mesh.shape()), "dp-cp");
  EXPECT_THROW(Mesh({.dp = 4, .dp_replicate = 3}), InternalError);
}

TEST(Nodes, AreCountedInFullOrPart) {
  EXPECT_EQ(Mesh({.dp = 16}).num_nodes(), 2);
  EXPECT_EQ(Mesh({.dp = 17}).num_nodes(), 3);
  EXPECT_EQ(Mesh({.dp = 4}).num_nodes(), 1);
  EXPECT_EQ(Mesh({.dp = 16}).node(7), 0);
  EXPECT_EQ(Mesh({.dp = 16}).node(8), 1);
}

TEST(Nodes, FastAxesStayInsideAndSlowOnesCross) {
  const Mesh mesh({.tp = 8, .dp = 2, .pp = 2, .etp = 1, .ep = 16});
  EXPECT_FALSE(mesh.crosses_nodes(Axis::kTp));
  EXPECT_TRUE(mesh.crosses_nodes(Axis::kDp));
  EXPECT_TRUE(mesh.crosses_nodes(Axis::kPp));
  EXPECT_TRUE(mesh.crosses_nodes(Axis::kEp));
  EXPECT_FALSE(mesh.crosses_nodes(Axis::kCp));  // degree 1 crosses nothing
  EXPECT_FALSE(mesh.crosses_nodes(Axis::kEtp));
}

TEST(Nodes, TensorGroupsThatDoNotFitTheNodeCross) {
  EXPECT_TRUE(Mesh({.tp = 16, .etp = 16}).crosses_nodes(Axis::kTp));
  // 3 does not divide 8: the group of ranks 6, 7, 8 spans two nodes although 3 < 8.
  EXPECT_TRUE(Mesh({.tp = 3, .dp = 3, .etp = 3}).crosses_nodes(Axis::kEtp));
  EXPECT_TRUE(Mesh({.tp = 4, .dp = 2, .etp = 4, .ranks_per_node = 2}).crosses_nodes(Axis::kTp));
}

}  // namespace
}  // namespace sevenfold

// Groups as Megatron-LM's RankGenerator makes them, computed with it by others: the layouts of real
// files must come out the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "sevenfold/mesh/mesh.h"

namespace sevenfold {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

Lists groups_of(const MeshShape& shape, const std::string& name) {
  for (const auto& [found, groups] : Mesh(shape).standard_groups()) {
    if (found != name) continue;
    Lists lists;
    for (const RankGroup& group : groups) lists.push_back(group.ranks);
    return lists;
  }
  throw std::invalid_argument("no standard group " + name);
}

// Ranks first, first + step, ... `count` of them.
std::vector<int64_t> sequence(int64_t first, int64_t count, int64_t step = 1) {
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < count; ++i) ranks.push_back(first + i * step);
  return ranks;
}

Lists neighbours(int64_t world, int64_t size) {
  Lists lists;
  for (int64_t first = 0; first < world; first += size) lists.push_back(sequence(first, size));
  return lists;
}

const MeshShape kDense16{.tp = 2, .cp = 2, .dp = 2, .pp = 2, .etp = 2};

TEST(World16Tp2Cp2Dp2Pp2, SingleAxes) {
  EXPECT_EQ(groups_of(kDense16, "tp"), neighbours(16, 2));
  EXPECT_EQ(groups_of(kDense16, "cp"),
            (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups_of(kDense16, "dp"),
            (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(groups_of(kDense16, "pp"),
            (Lists{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
}

TEST(World16Tp2Cp2Dp2Pp2, AxesTogether) {
  EXPECT_EQ(groups_of(kDense16, "dp-cp"),
            (Lists{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(groups_of(kDense16, "tp-pp"),
            (Lists{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
  EXPECT_EQ(groups_of(kDense16, "tp-cp"), neighbours(16, 4));
  EXPECT_EQ(groups_of(kDense16, "tp-dp-cp"), neighbours(16, 8));
}

TEST(World16Tp2Cp2Dp2Pp2, EmbeddingsSitOnThePipelineEnds) {
  EXPECT_EQ(groups_of(kDense16, "embedding"),
            groups_of(kDense16, "pp"));  // two stages: both are ends
  EXPECT_EQ(groups_of(kDense16, "position-embedding"),
            (Lists{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
}

TEST(World16Tp2Cp2Dp2Pp2, MappingPutsPipelinesInside) {
  MeshShape shape = kDense16;
  shape.etp = 2;
  shape.ep = 2;  // dp and edp must be equal
  shape.tp_pp_dp_mapping = true;
  EXPECT_EQ(groups_of(shape, "pp"),
            (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(groups_of(shape, "dp"),
            (Lists{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
  EXPECT_EQ(groups_of(shape, "edp"), groups_of(shape, "dp"));
}

const MeshShape kExperts16{.tp = 2, .dp = 4, .pp = 2, .etp = 1, .ep = 4};

TEST(World16Tp2Pp2Ep4Etp1, DenseView) {
  EXPECT_EQ(groups_of(kExperts16, "tp"), neighbours(16, 2));
  EXPECT_EQ(groups_of(kExperts16, "dp"),
            (Lists{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(groups_of(kExperts16, "pp"),
            (Lists{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
}

TEST(World16Tp2Pp2Ep4Etp1, ExpertView) {
  EXPECT_EQ(kExperts16.edp(), 2);
  EXPECT_EQ(groups_of(kExperts16, "ep"), neighbours(16, 4));
  EXPECT_EQ(groups_of(kExperts16, "etp"), neighbours(16, 1));
  EXPECT_EQ(groups_of(kExperts16, "etp-ep"), neighbours(16, 4));
  EXPECT_EQ(groups_of(kExperts16, "edp"),
            (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(groups_of(kExperts16, "etp-ep-pp"),
            (Lists{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
}

TEST(World8Tp2Ep2Etp2, ExpertView) {
  const MeshShape shape{.tp = 2, .dp = 4, .etp = 2, .ep = 2};
  EXPECT_EQ(groups_of(shape, "ep"), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_of(shape, "etp"), neighbours(8, 2));
  EXPECT_EQ(groups_of(shape, "edp"), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(World16Ep8Pp2, ExpertView) {
  const MeshShape shape{.dp = 8, .pp = 2, .ep = 8};
  EXPECT_EQ(groups_of(shape, "ep"), neighbours(16, 8));
  EXPECT_EQ(groups_of(shape, "edp"), neighbours(16, 1));
}

TEST(World1, EveryGroupHoldsTheOneRank) {
  for (const auto& [name, groups] : Mesh(MeshShape{}).standard_groups()) {
    ASSERT_EQ(groups.size(), 1u) << name;
    EXPECT_EQ(groups[0].ranks, std::vector<int64_t>{0}) << name;
  }
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/parallel/data/weight_gather.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

std::unique_ptr<Parameter> parameter(const std::string& name, int64_t size) {
  return std::make_unique<Parameter>(name, ParameterKind::kMatrix, replicated_spec({size}));
}

// Each rank has stepped on its own elements only: r + 1 on rank r, -1 where others step.
TEST(GatherWeights, MakesEveryRankHoldWhatTheOwnersHold) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16})
    run_ranks(Mesh({.cp = 2, .dp = 2}), {}, [&](RankContext& rank) {
      const auto low = parameter("low", 6), high = parameter("high", 3);
      std::vector<Bucket> buckets =
          build_buckets({{low.get()}, {high.get()}}, rank, type, 1, ZeroStage::kOptimizer);
      for (const auto* each : {&low, &high}) {
        (*each)->weight().fill_(-1.0);
        (*each)->owned_weight().fill_(static_cast<double>(rank.rank + 1));
      }
      rank.traffic.clear();
      gather_weights(buckets, rank);
      const auto expect = [&](const Parameter& gathered, const std::vector<double>& owners) {
        EXPECT_TRUE(at::equal(gathered.weight(), at::tensor(owners, at::kDouble).to(type)));
      };
      expect(*low, {1, 2, 2, 3, 4, 4});
      expect(*high, {2, 3, 4});  // rank 0 owns none of it
      EXPECT_EQ(rank.traffic.of_group("dp-cp").operations, 2) << "one for each bucket";
    });
}

TEST(GatherWeights, SendsNothingWhereEveryRankOwnsAll) {
  run_ranks(Mesh({.dp = 2}), {}, [](RankContext& rank) {
    const auto only = parameter("only", 6);
    std::vector<Bucket> buckets = build_buckets({{only.get()}}, rank, at::kFloat, 1);
    gather_weights(buckets, rank);
    EXPECT_EQ(rank.traffic.total().operations, 0);
  });
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/parallel/data/gradient_reducer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

std::unique_ptr<Parameter> parameter(const std::string& name, int64_t size) {
  return std::make_unique<Parameter>(name, ParameterKind::kMatrix, replicated_spec({size}));
}

TEST(GradientReducer, SumsEachBucketOverTheDataParallelRanks) {
  run_ranks(Mesh({.dp = 3}), {}, [](RankContext& rank) {
    const auto low = parameter("low", 4), high = parameter("high", 2);
    std::vector<Bucket> buckets = build_buckets({{low.get()}, {high.get()}}, rank, at::kDouble, 1);
    GradientReducer reducer(buckets, rank);
    high->gradient().fill_(static_cast<double>(rank.rank + 1));
    reducer.layer_complete(1);
    low->gradient().fill_(10.0 * static_cast<double>(rank.rank));
    reducer.layer_complete(0);
    reducer.finish();
    EXPECT_TRUE(at::equal(high->gradient(), at::full({2}, 6.0, at::kDouble)));
    EXPECT_TRUE(at::equal(low->gradient(), at::full({4}, 30.0, at::kDouble)));
  });
}

TEST(GradientReducer, SumsOverContextParallelRanksToo) {
  run_ranks(Mesh({.cp = 2, .dp = 2}), {}, [](RankContext& rank) {
    const auto only = parameter("only", 3);
    std::vector<Bucket> buckets = build_buckets({{only.get()}}, rank, at::kDouble, 1);
    GradientReducer reducer(buckets, rank);
    only->gradient().fill_(1.0);
    reducer.layer_complete(0);
    reducer.finish();
    EXPECT_TRUE(at::equal(only->gradient(), at::full({3}, 4.0, at::kDouble)));
  });
}

TEST(GradientReducer, RefusesAParameterWhoseSpecNamesOtherAxes) {
  EXPECT_THROW(run_ranks(Mesh(MeshShape{}), {},
                         [](RankContext& rank) {
                           ShardSpec spec = replicated_spec({3});
                           spec.placements.pop_back();
                           Parameter odd("odd", ParameterKind::kMatrix, spec);
                           std::vector<Bucket> buckets =
                               build_buckets({{&odd}}, rank, at::kDouble, 1);
                           GradientReducer reducer(buckets, rank);
                         }),
               InternalError);
}

}  // namespace
}  // namespace sevenfold

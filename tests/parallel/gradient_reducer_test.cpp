#include "sevenfold/parallel/data/gradient_reducer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"
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

// Three ranks and buckets of 7 and 2 elements: shards of 2, 2 and 3, and of 0, 1 and 1.
TEST(EvenCut, GivesSizesThatDifferByOneAtMost) {
  EXPECT_EQ(even_cut(7, 3), (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(even_cut(2, 3), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(even_cut(6, 1), (std::vector<int64_t>{6}));
}

class ShardedGradients : public ::testing::TestWithParam<ZeroStage> {};

TEST_P(ShardedGradients, AreTheSumsOfWhatEachRankOwns) {
  install_allocator();
  run_ranks(Mesh({.dp = 3}), {}, [](RankContext& rank) {
    const MemoryScope scope(&rank.memory, MemoryCategory::kActivations);
    const auto first = parameter("first", 3), second = parameter("second", 4);
    const auto high = parameter("high", 2);
    std::vector<Bucket> buckets = build_buckets({{first.get(), second.get()}, {high.get()}}, rank,
                                                at::kDouble, 1, GetParam());
    const std::vector<ElementRange> of_first = {{0, 2}, {2, 3}, {3, 3}};
    const std::vector<ElementRange> of_second = {{0, 0}, {0, 1}, {1, 4}};
    const std::vector<ElementRange> of_high = {{0, 0}, {0, 1}, {1, 2}};
    const auto at = static_cast<size_t>(rank.rank);
    EXPECT_EQ(first->owned(), of_first[at]);
    EXPECT_EQ(second->owned().size(), of_second[at].size());
    EXPECT_EQ(high->owned().size(), of_high[at].size());
    GradientReducer reducer(buckets, rank, GetParam());
    reducer.begin_step();
    for (const double microbatch : {1.0, 10.0}) {
      const bool is_last = microbatch == 10.0;
      reducer.begin_backward({0, 3});
      high->gradient().add_(microbatch);
      if (is_last || reducer.reduces_every_microbatch()) reducer.layer_complete(1);
      first->gradient().add_(at::arange(3, at::kDouble) * microbatch);
      second->gradient().add_(at::arange(3, 7, at::kDouble) * microbatch);
      if (is_last || reducer.reduces_every_microbatch()) reducer.layer_complete(0);
    }
    reducer.finish();
    EXPECT_TRUE(
        at::equal(high->owned_gradient(), at::full({high->owned().size()}, 33.0, at::kDouble)));
    const at::Tensor sums = at::arange(7, at::kDouble) * 33.0;
    const int64_t begin = std::vector<int64_t>{0, 2, 4}[at];
    EXPECT_TRUE(at::equal(at::cat({first->owned_gradient(), second->owned_gradient()}),
                          sums.narrow(0, begin, rank.rank == 2 ? 3 : 2)));
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, ShardedGradients,
                         ::testing::Values(ZeroStage::kOptimizer, ZeroStage::kGradients,
                                           ZeroStage::kParameters),
                         [](const auto& instance) {
                           return "stage" + std::to_string(static_cast<int>(instance.param));
                         });

// Two sets of two shards: every rank ends with the sum of all four, of its shard.
TEST_P(ShardedGradients, AreSummedOverTheSetsOfShardsToo) {
  run_ranks(Mesh({.dp = 4, .dp_replicate = 2}), {}, [](RankContext& rank) {
    const auto only = parameter("only", 5);
    std::vector<Bucket> buckets = build_buckets({{only.get()}}, rank, at::kDouble, 1, GetParam());
    GradientReducer reducer(buckets, rank, GetParam());
    reducer.begin_step();
    reducer.begin_backward({0, 1});
    only->gradient().add_(at::arange(5, at::kDouble) + static_cast<double>(rank.rank));
    reducer.layer_complete(0);
    reducer.finish();
    const at::Tensor sum = at::arange(5, at::kDouble) * 4.0 + 6.0;
    EXPECT_TRUE(at::equal(only->owned_gradient(),
                          rank.rank % 2 == 0 ? sum.narrow(0, 0, 2) : sum.narrow(0, 2, 3)));
    EXPECT_EQ(rank.traffic.of_group("dp-cp").operations, 0);
    EXPECT_EQ(rank.traffic.of_group("dp-replicate").operations, 1);
  });
}

// Field case B46: eight owners of 32, 3 and 101 x 32 elements; who owns none of the 3 takes part.
TEST_P(ShardedGradients, OfUnevenAndEmptyShardsAreSummed) {
  run_ranks(Mesh({.dp = 8}), {}, [](RankContext& rank) {
    const auto a = parameter("a", 32), b = parameter("b", 3), c = parameter("c", 101 * 32);
    std::vector<Bucket> buckets =
        build_buckets({{a.get()}, {b.get()}, {c.get()}}, rank, at::kDouble, 1, GetParam());
    GradientReducer reducer(buckets, rank, GetParam());
    reducer.begin_step();
    reducer.begin_backward({0, 3});
    int64_t layer = 2;
    for (const auto* each : {&c, &b, &a}) {
      (*each)->gradient().add_(at::arange((*each)->num_elements(), at::kDouble));
      reducer.layer_complete(layer--);
    }
    reducer.finish();
    for (const auto* each : {&a, &b, &c}) {
      const ElementRange owned = (*each)->owned();
      EXPECT_TRUE(at::equal((*each)->owned_gradient(),
                            at::arange(owned.begin, owned.end, at::kDouble) * 8.0));
    }
    EXPECT_EQ(b->owned().size(), rank.rank == 2 || rank.rank == 5 || rank.rank == 7 ? 1 : 0);
  });
}

// Stage 2: from the first to the last of its layers' backward, as communication.
TEST(LentGradients, LiveWhileLayersAddToThem) {
  install_allocator();
  run_ranks(Mesh({.dp = 2}), {}, [](RankContext& rank) {
    const MemoryScope scope(&rank.memory, MemoryCategory::kActivations);
    const auto table = parameter("table", 10), middle = parameter("middle", 6);
    std::vector<Bucket> buckets = build_buckets({{table.get()}, {middle.get()}, {table.get()}},
                                                rank, at::kFloat, 1, ZeroStage::kGradients);
    GradientReducer reducer(buckets, rank, ZeroStage::kGradients);
    const auto lent = [&] { return rank.memory.live(MemoryCategory::kCommunication) / 4; };
    EXPECT_EQ(rank.memory.live(MemoryCategory::kGradients), (5 + 3) * 4);
    reducer.begin_step();
    EXPECT_EQ(lent(), 0);
    for (int microbatch = 0; microbatch < 2; ++microbatch) {
      reducer.begin_backward({0, 3});
      EXPECT_EQ(lent(), 10);
      EXPECT_FALSE(middle->gradient().defined());
      reducer.layer_complete(2);
      EXPECT_EQ(lent(), 16);
      EXPECT_EQ(middle->gradient().sum().item<float>(), 0.0f);
      reducer.layer_complete(1);
      EXPECT_EQ(lent(), 10) << "the table waits for its other layer";
      reducer.layer_complete(0);
      EXPECT_EQ(lent(), 0);
    }
    reducer.finish();
    EXPECT_FALSE(table->gradient().defined());
    EXPECT_EQ(rank.traffic.of_group("dp-cp").bytes_sent, 2 * (5 + 3) * 4);
  });
}

// Of two chunks, the first of a stage without layers: nothing of the other's is lent to it.
TEST(LentGradients, AreNoneOfAChunkWithoutLayers) {
  run_ranks(Mesh({.dp = 2}), {}, [](RankContext& rank) {
    const auto only = parameter("only", 4);
    std::vector<Bucket> buckets = build_buckets({{only.get()}}, rank, at::kDouble, 1,
                                                ZeroStage::kGradients, {{0, 0}, {0, 1}});
    GradientReducer reducer(buckets, rank, ZeroStage::kGradients);
    reducer.begin_step();
    reducer.begin_backward({0, 0});
    EXPECT_FALSE(buckets.front().gradients.defined());
    reducer.begin_backward({0, 1});
    EXPECT_TRUE(buckets.front().gradients.defined());
  });
}

// Rounded to bf16 before the sum, and the sum once more; half the bytes. What a rank owns of it.
class Bf16Sums : public ::testing::TestWithParam<ZeroStage> {};

TEST_P(Bf16Sums, RoundEachPartAndTheSum) {
  install_allocator();
  constexpr int64_t kRanks = 3, kElements = 1001;
  at::manual_seed(5);
  std::vector<at::Tensor> parts;
  at::Tensor sum = at::zeros({kElements});
  for (int64_t r = 0; r < kRanks; ++r) {
    parts.push_back(at::randn({kElements}) * 3);
    sum = sum + parts.back().to(at::kBFloat16).to(at::kFloat);
  }
  const at::Tensor expected = sum.to(at::kBFloat16).to(at::kFloat);
  EXPECT_FALSE(at::equal(expected, sum));
  run_ranks(Mesh({.dp = kRanks}), {}, [&](RankContext& rank) {
    const MemoryScope scope(&rank.memory, MemoryCategory::kActivations);
    const auto only = parameter("only", kElements);
    std::vector<Bucket> buckets = build_buckets({{only.get()}}, rank, at::kBFloat16, 1, GetParam());
    GradientReducer reducer(buckets, rank, GetParam(), /*sum_in_bf16=*/true);
    reducer.begin_step();
    reducer.begin_backward({0, 1});
    only->gradient().add_(parts[static_cast<size_t>(rank.rank)]);
    rank.memory.reset_peaks();
    const int64_t before = rank.memory.live(MemoryCategory::kCommunication);
    reducer.layer_complete(0);
    reducer.finish();
    EXPECT_EQ(rank.memory.peak(MemoryCategory::kCommunication) - before, kElements * 2)
        << "the rounded copy";
    const ElementRange own = only->owned();
    EXPECT_EQ(only->owned_gradient().scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(only->owned_gradient(), expected.narrow(0, own.begin, own.size())));
    EXPECT_EQ(rank.memory.live(MemoryCategory::kCommunication), 0);
    const int64_t bytes = rank.group("dp-cp").size() * rank.traffic.total().bytes_sent;
    const int64_t halves = GetParam() == ZeroStage::kNone ? 2 : 1;
    EXPECT_NEAR(static_cast<double>(bytes),
                static_cast<double>(halves * (kRanks - 1) * kElements * 2), 4.0 * kRanks * kRanks)
        << "parts of the ring differ by one element";
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, Bf16Sums,
                         ::testing::Values(ZeroStage::kNone, ZeroStage::kOptimizer,
                                           ZeroStage::kGradients));

TEST(RoundedSums, OfOneRankAreNotRounded) {
  run_ranks(Mesh({.dp = 1}), {}, [](RankContext& rank) {
    const auto only = parameter("only", 3);
    std::vector<Bucket> buckets = build_buckets({{only.get()}}, rank, at::kBFloat16, 1);
    GradientReducer reducer(buckets, rank, ZeroStage::kNone, /*sum_in_bf16=*/true);
    only->gradient().fill_(1.001);
    reducer.layer_complete(0);
    reducer.finish();
    EXPECT_EQ(only->gradient()[0].item<float>(), 1.001F);
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

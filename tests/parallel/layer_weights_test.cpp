#include "sevenfold/parallel/data/layer_weights.h"

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

// Three layers on two ranks: a table of 10 elements that the first and the last read, and 6 and 3
// in the middle and the last.
struct Layers {
  Layers(RankContext& context, const LayerWeightsOptions& options)
      : buckets(build_buckets({{table.get()}, {middle.get()}, {top.get(), table.get()}}, context,
                              at::kFloat, 1, options.stage)),
        weights(buckets, context, options),
        rank(context) {
    own(0);
  }

  // What a step does: each rank writes what it owns, `value` + 10 on rank 1.
  void own(double value) {
    for (Bucket& bucket : buckets)
      bucket.owned_weights.fill_(value + 10.0 * static_cast<double>(rank.rank));
  }
  int64_t gathered() const { return rank.memory.live(MemoryCategory::kCommunication) / 4; }

  std::unique_ptr<Parameter> table = parameter("table", 10), middle = parameter("middle", 6),
                             top = parameter("top", 3);
  std::vector<Bucket> buckets;
  LayerWeights weights;
  RankContext& rank;
};

void on_two_ranks(const LayerWeightsOptions& options, const std::function<void(Layers&)>& body,
                  FaultSet faults = {}) {
  install_allocator();
  run_ranks(Mesh({.dp = 2}), {.faults = faults}, [&](RankContext& rank) {
    Layers layers(rank, options);
    body(layers);
  });
}

at::Tensor floats(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).to(at::kFloat);
}

// Each rank has stepped on its own elements only: r + 1 on rank r, -1 where others step.
TEST(LayerWeights, AreWhatTheOwnersHoldAfterAStep) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16})
    run_ranks(Mesh({.cp = 2, .dp = 2}), {}, [&](RankContext& rank) {
      const auto low = parameter("low", 6), high = parameter("high", 3);
      std::vector<Bucket> buckets =
          build_buckets({{low.get()}, {high.get()}}, rank, type, 1, ZeroStage::kOptimizer);
      LayerWeights weights(buckets, rank, {.stage = ZeroStage::kOptimizer});
      for (const auto* each : {&low, &high}) {
        (*each)->weight().fill_(-1.0);
        (*each)->owned_weight().fill_(static_cast<double>(rank.rank + 1));
      }
      rank.traffic.clear();
      weights.stepped();
      const auto expect = [&](const Parameter& gathered, const std::vector<double>& owners) {
        EXPECT_TRUE(at::equal(gathered.weight(), at::tensor(owners, at::kDouble).to(type)));
      };
      expect(*low, {1, 2, 2, 3, 4, 4});
      expect(*high, {2, 3, 4});  // rank 0 owns none of it
      EXPECT_EQ(rank.traffic.of_group("dp-cp").operations, 2) << "one for each bucket";
    });
}

TEST(LayerWeights, AreNotSentWhereEveryRankOwnsAll) {
  on_two_ranks({}, [](Layers& layers) {
    layers.weights.stepped();
    layers.weights.acquire(0, 1);
    EXPECT_TRUE(layers.middle->is_readable());
    EXPECT_EQ(layers.rank.traffic.total().operations, 0);
  });
}

// Replicas of shards: neighbours share a set, and the other set is not asked.
TEST(LayerWeights, AreGatheredInsideASetOfShards) {
  run_ranks(Mesh({.dp = 4, .dp_replicate = 2}), {}, [&](RankContext& rank) {
    const auto only = parameter("only", 5);
    std::vector<Bucket> buckets =
        build_buckets({{only.get()}}, rank, at::kDouble, 1, ZeroStage::kParameters);
    LayerWeights weights(buckets, rank, {.stage = ZeroStage::kParameters});
    only->owned_weight().fill_(static_cast<double>(rank.rank));
    weights.acquire(0);
    const double first = rank.rank < 2 ? 0.0 : 2.0;
    EXPECT_TRUE(at::equal(only->weight(), at::tensor({0.0, 0.0, 1.0, 1.0, 1.0}) + first));
    EXPECT_EQ(rank.traffic.of_group("dp-cp").operations, 0);
    EXPECT_EQ(rank.traffic.of_group("dp-shard-cp").operations, 1);
  });
}

// Field case B46: eight owners of 32, 3 and 101 x 32 elements; who owns none of the 3 takes part.
TEST(GatheredLayers, MayHaveUnevenAndEmptyShards) {
  run_ranks(Mesh({.dp = 8}), {}, [](RankContext& rank) {
    const auto a = parameter("a", 32), b = parameter("b", 3), c = parameter("c", 101 * 32);
    std::vector<Bucket> buckets = build_buckets({{a.get()}, {b.get()}, {c.get()}}, rank,
                                                at::kDouble, 1, ZeroStage::kParameters);
    LayerWeights weights(buckets, rank, {.stage = ZeroStage::kParameters});
    for (const auto* each : {&a, &b, &c})
      (*each)->owned_weight().copy_(
          at::arange((*each)->owned().begin, (*each)->owned().end, at::kDouble));
    size_t layer = 0;
    for (const auto* each : {&a, &b, &c}) {
      weights.acquire(layer, layer < 2 ? std::optional(layer + 1) : std::nullopt);
      EXPECT_TRUE(at::equal((*each)->weight(), at::arange((*each)->num_elements(), at::kDouble)));
      weights.release(layer++, LayerPass::kForward);
    }
  });
}

TEST(OverlappedGather, EndsWhenALayerNeedsIt) {
  on_two_ranks({.stage = ZeroStage::kGradients, .overlap = true}, [](Layers& layers) {
    EXPECT_TRUE(layers.middle->is_readable()) << "start weights are whole";
    layers.own(1.0);
    layers.weights.stepped();
    EXPECT_THROW(layers.middle->weight(), InternalError);
    layers.weights.acquire(1, 2);
    EXPECT_TRUE(at::equal(layers.middle->weight(), floats({1, 1, 1, 11, 11, 11})));
    EXPECT_THROW(layers.top->weight(), InternalError);
    layers.weights.acquire(2);
    EXPECT_TRUE(at::equal(layers.top->weight(), floats({1, 11, 11})));
    EXPECT_EQ(layers.rank.traffic.of_group("dp-cp").operations, 3);
  });
}

TEST(GatheredLayers, ExistFromAcquireToReleaseAndTheNextAheadOfIt) {
  on_two_ranks({.stage = ZeroStage::kParameters}, [](Layers& layers) {
    EXPECT_EQ(layers.rank.memory.live(MemoryCategory::kParameters),
              (5 + 3 + (layers.rank.rank == 0 ? 1 : 2)) * 4);
    EXPECT_EQ(layers.gathered(), 0);
    EXPECT_THROW(layers.table->weight(), InternalError);
    layers.weights.acquire(0, 1);
    EXPECT_EQ(layers.gathered(), 10 + 6);
    EXPECT_TRUE(at::equal(layers.table->weight().narrow(0, 4, 2), floats({0, 10})));
    EXPECT_THROW(layers.middle->weight(), InternalError) << "under way, not acquired";
    layers.weights.release(0, LayerPass::kForward);
    layers.weights.acquire(1, 2);
    EXPECT_TRUE(at::equal(layers.middle->weight(), floats({0, 0, 0, 10, 10, 10})));
    EXPECT_EQ(layers.gathered(), 10 + 6 + 3) << "the last layer reads the table again";
    layers.weights.release(1, LayerPass::kForward);
    EXPECT_THROW(layers.middle->weight(), InternalError);
    layers.weights.acquire(2);
    EXPECT_EQ(layers.gathered(), 10 + 3);
    layers.weights.release(2, LayerPass::kForward);
    EXPECT_EQ(layers.gathered(), 0);
    EXPECT_EQ(layers.rank.traffic.of_group("dp-cp").operations, 3);
  });
}

TEST(GatheredLayers, OfATiedTableLiveThroughBackwardToo) {
  on_two_ranks({.stage = ZeroStage::kParameters}, [](Layers& layers) {
    for (const size_t layer : {2, 1, 0}) {
      layers.weights.acquire(layer, layer > 0 ? std::optional(layer - 1) : std::nullopt);
      EXPECT_TRUE(layers.table->is_readable());
      layers.weights.release(layer, LayerPass::kBackward);
      EXPECT_EQ(layers.gathered(), layer == 2 ? 16 : layer == 1 ? 10 : 0);
    }
    EXPECT_EQ(layers.rank.traffic.of_group("dp-cp").operations, 3);
  });
}

TEST(GatheredLayers, StayForBackwardWhereForwardDoesNotReshard) {
  on_two_ranks({.stage = ZeroStage::kParameters, .reshard_after_forward = false},
               [](Layers& layers) {
                 layers.weights.acquire(1);
                 layers.weights.release(1, LayerPass::kForward);
                 EXPECT_EQ(layers.gathered(), 10 + 6);
                 EXPECT_THROW(layers.middle->weight(), InternalError);
                 layers.weights.acquire(1);
                 EXPECT_TRUE(layers.middle->is_readable());
                 EXPECT_EQ(layers.rank.traffic.of_group("dp-cp").operations, 2);
                 layers.weights.release(1, LayerPass::kBackward);
                 EXPECT_EQ(layers.gathered(), 10);
                 layers.weights.acquire(1);
                 layers.weights.release(1, LayerPass::kEvaluation);
                 EXPECT_EQ(layers.gathered(), 10) << "an evaluation keeps nothing";
                 layers.weights.release(0, LayerPass::kBackward);
               });
}

TEST(GatheredLayers, AreThoseOfTheLastStep) {
  on_two_ranks({.stage = ZeroStage::kParameters, .reshard_after_forward = false},
               [](Layers& layers) {
                 layers.weights.acquire(1);
                 layers.weights.release(1, LayerPass::kForward);
                 layers.own(5.0);
                 layers.weights.stepped();
                 EXPECT_EQ(layers.gathered(), 0);
                 layers.weights.acquire(1);
                 EXPECT_TRUE(at::equal(layers.middle->weight(), floats({5, 5, 5, 15, 15, 15})));
               });
}

TEST(GatheredLayers, MustNotBeKeptByAnybody) {
  EXPECT_THROW(on_two_ranks({.stage = ZeroStage::kParameters},
                            [](Layers& layers) {
                              layers.weights.acquire(1);
                              const at::Tensor kept = layers.middle->weight().narrow(0, 0, 1);
                              layers.weights.release(1, LayerPass::kForward);
                            }),
               InternalError);
}

TEST(GatheredLayers, AreShownBucketByBucket) {
  for (const ZeroStage stage : {ZeroStage::kNone, ZeroStage::kGradients, ZeroStage::kParameters})
    on_two_ranks({.stage = stage, .overlap = true}, [&](Layers& layers) {
      layers.weights.stepped();
      int64_t elements = 0;
      layers.weights.visit([&](const Bucket& bucket) {
        for (const Parameter* each : bucket.parameters) elements += each->weight().numel();
        if (stage == ZeroStage::kParameters) {
          EXPECT_EQ(layers.gathered(), bucket.elements);
        }
      });
      EXPECT_EQ(elements, 10 + 6 + 3);
      EXPECT_EQ(layers.gathered(), 0);
    });
}

#ifdef SEVENFOLD_FAULTS
TEST(StaleWeights, AreRefusedInEveryStage) {
  for (const ZeroStage stage :
       {ZeroStage::kOptimizer, ZeroStage::kGradients, ZeroStage::kParameters})
    for (const bool overlap : {false, true}) {
      const auto acquire_after_step = [](Layers& layers) {
        layers.weights.acquire(1);
        layers.weights.release(1, LayerPass::kBackward);
        layers.weights.stepped();
        layers.weights.acquire(1);
      };
      on_two_ranks({.stage = stage, .overlap = overlap}, acquire_after_step);
      EXPECT_THROW(on_two_ranks({.stage = stage, .overlap = overlap}, acquire_after_step,
                                FaultSet().enable(Fault::kStaleWeights)),
                   InternalError);
    }
}
#endif

}  // namespace
}  // namespace sevenfold

// ZeRO against one rank by the proof rules, and against replicated training bit by bit.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "parity/zero_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "sevenfold/train/proof/verify.h"

namespace sevenfold {
namespace {

using testing::Sets;
using testing::TemporaryDirectory;
using testing::zero_experiment;
using testing::ZeroCase;

class ZeroLayout : public ::testing::TestWithParam<ZeroCase> {
 protected:
  void SetUp() override { install_allocator(); }
};

TEST_P(ZeroLayout, ComputesWhatOneRankComputes) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = zero_experiment(directory, GetParam());
  EXPECT_EQ(static_cast<int64_t>(experiment.config.parallel.zero), GetParam().stage);
  const VerifyReport report = verify_layout(proof_config(experiment.config), *experiment.data, {});
  EXPECT_TRUE(report.pass) << report.failure();
  EXPECT_TRUE(report.axes_used.at("dp"));
  for (const VerifyStep& step : report.steps) EXPECT_TRUE(std::isfinite(step.loss_layout));
}

INSTANTIATE_TEST_SUITE_P(Cover, ZeroLayout,
                         ::testing::ValuesIn(testing::zero_cases(
                             testing::pairwise_cover(testing::all_zero_combinations()))),
                         [](const auto& instance) { return instance.param.name(); });

// Momentum and AdamW keep states from step to step: a shard that steps on others' states would
// drift.
TEST(ZeroStates, FollowOneRankThroughSteps) {
  install_allocator();
  for (const char* optimizer : {"adam", "sgd"})
    for (const ZeroCase& c :
         {ZeroCase{.stage = 1, .dp = 3}, ZeroCase{.stage = 2, .dp = 3},
          ZeroCase{.stage = 3, .dp = 3}, ZeroCase{.stage = 1, .dp = 4, .replicate = 2},
          ZeroCase{.stage = 3, .dp = 4, .replicate = 2}}) {
      ZeroCase layout = c;
      layout.accumulation = 2;
      layout.tied = true;
      const TemporaryDirectory directory;
      const testing::Experiment experiment = zero_experiment(
          directory, layout,
          {{"optimizer", optimizer}, {"sgd_momentum", 0.9}, {"lr", 0.01}, {"weight_decay", 0.1}});
      const LayoutTrace one =
          trace_layout(one_rank_config(experiment.config), *experiment.data, {.steps = 4});
      const LayoutTrace many = trace_layout(experiment.config, *experiment.data, {.steps = 4});
      for (const auto& [name, weights] : one.final_weights)
        EXPECT_TRUE(at::allclose(many.final_weights.at(name), weights, 0.0, 1e-9))
            << optimizer << " " << layout.name() << " " << name;
    }
}

// Gradients all 1: every logical parameter counts once, whoever owns it (field case B06).
TEST(ZeroNorm, OfOnesIsTheRootOfTheNumberOfLogicalParameters) {
  install_allocator();
  for (const int64_t stage : {0, 1, 2, 3})
    for (const bool tied : {false, true})
      for (const int64_t tp : {1, 2})
        for (const auto& [dp, replicate] : Sets{{1, 1}, {3, 1}, {4, 2}, {2, 2}}) {
          if (stage == 0 && replicate > 1) continue;
          const TemporaryDirectory directory;
          const ZeroCase c{.stage = stage,
                           .dp = dp,
                           .tp = tp,
                           .sequence = tp > 1,
                           .tied = tied,
                           .replicate = replicate};
          const testing::Experiment experiment = zero_experiment(directory, c);
          const LayoutTrace trace =
              trace_layout(experiment.config, *experiment.data, {.steps = 1, .ones = true});
          EXPECT_NEAR(trace.steps[0].gradient_norm, std::sqrt(tied ? 40384.0 : 43616.0), 1e-9)
              << c.name();
        }
}

LayoutTrace three_adamw_steps(const ZeroCase& c, const std::string& precision,
                              double dropout = 0.0) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = zero_experiment(directory, c,
                                                         {{"optimizer", "adam"},
                                                          {"weight_decay", 0.1},
                                                          {"lr", 0.01},
                                                          {"hidden_dropout", dropout},
                                                          {"attention_dropout", dropout},
                                                          {"bf16", precision == "bf16"}},
                                                         {{"precision", precision}});
  return trace_layout(experiment.config, *experiment.data, {.steps = 3});
}

void expect_equal_bits(const LayoutTrace& a, const LayoutTrace& b, const std::string& what) {
  EXPECT_TRUE(a.replicas_equal && b.replicas_equal) << what;
  for (size_t step = 0; step < a.steps.size(); ++step)
    EXPECT_EQ(a.steps[step].loss, b.steps[step].loss) << what << " step " << step;
  for (const auto& [name, weights] : a.final_weights)
    EXPECT_TRUE(at::equal(weights, b.final_weights.at(name))) << what << " " << name;
}

// A reduce-scatter sums in the order of an all-reduce, and a step is element by element: the same
// bits. Stage 2 sums ranks before micro batches, so with accumulation it rounds in another order.
TEST(ZeroStages, GiveTheBitsOfReplicatedTraining) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16"})
    for (const int64_t tp : {1, 2})
      for (const int64_t accumulation : {1, 4}) {
        ZeroCase c{.stage = 0, .dp = 3, .accumulation = accumulation, .tp = tp, .tied = true};
        const LayoutTrace replicated = three_adamw_steps(c, precision);
        for (const int64_t stage : {1, 2, 3}) {
          if (stage >= 2 && accumulation > 1) continue;
          c.stage = stage;
          expect_equal_bits(replicated, three_adamw_steps(c, precision),
                            precision + (" " + c.name()));
        }
      }
}

TEST(ZeroBuckets, DoNotChangeABit) {
  install_allocator();
  for (const int64_t stage : {1, 2})
    expect_equal_bits(
        three_adamw_steps({.stage = stage, .dp = 4, .accumulation = 2}, "fp32"),
        three_adamw_steps({.stage = stage, .dp = 4, .accumulation = 2, .bucket_elements = 1},
                          "fp32"),
        "stage " + std::to_string(stage));
}

// Where the order of sums is the same (stages 2 and 3), accumulation does not matter; nor does it
// that a layer runs again and draws its dropout again (field case B41).
TEST(ZeroStages, TwoAndThreeGiveTheSameBitsWithAccumulation) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16"}) {
    ZeroCase c{.stage = 2, .dp = 3, .accumulation = 4, .tp = 2, .tied = true};
    const LayoutTrace two = three_adamw_steps(c, precision, 0.2);
    for (const bool reshard : {true, false})
      for (const int64_t recomputed : {0, 1, 3}) {
        c = {.stage = 3, .dp = 3, .accumulation = 4, .tp = 2, .tied = true};
        c.reshard = reshard;
        c.recomputed = recomputed;
        expect_equal_bits(two, three_adamw_steps(c, precision, 0.2), precision + (" " + c.name()));
      }
  }
}

TEST(OverlappedGather, DoesNotChangeABit) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16"})
    for (const int64_t stage : {1, 2})
      for (const int64_t bucket_elements : {int64_t{1}, int64_t{20'000}}) {
        ZeroCase c{.stage = stage,
                   .dp = 3,
                   .accumulation = 2,
                   .tied = true,
                   .bucket_elements = bucket_elements};
        const LayoutTrace after_step = three_adamw_steps(c, precision);
        c.overlap = true;
        expect_equal_bits(after_step, three_adamw_steps(c, precision),
                          precision + (" " + c.name()));
      }
}

// Sets of one shard are copies (field case B46: shard degree 1 must not drop replication).
TEST(HybridSharding, WithOneShardPerSetGivesTheBitsOfReplicatedTraining) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16"}) {
    const LayoutTrace replicated =
        three_adamw_steps({.stage = 0, .dp = 2, .tied = true}, precision);
    for (const int64_t stage : {1, 2, 3}) {
      const ZeroCase c{.stage = stage, .dp = 2, .tied = true, .replicate = 2};
      expect_equal_bits(replicated, three_adamw_steps(c, precision), precision + (" " + c.name()));
    }
  }
}

TEST(HybridSharding, GivesTheSameBitsInEveryStage) {
  install_allocator();
  const LayoutTrace one = three_adamw_steps({.stage = 1, .dp = 4, .replicate = 2}, "fp32");
  for (const int64_t stage : {2, 3})
    expect_equal_bits(one, three_adamw_steps({.stage = stage, .dp = 4, .replicate = 2}, "fp32"),
                      "stage " + std::to_string(stage));
}

// Field case B40: a shard is cut out of the values that one rank starts with.
TEST(ZeroStart, HasTheBitsOfOneRank) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16"})
    for (const char* start : {"init", "hot"}) {
      const auto weights_of = [&](const ZeroCase& c) {
        const TemporaryDirectory directory;
        const testing::Experiment experiment =
            zero_experiment(directory, c, {{"bf16", std::string("bf16") == precision}},
                            {{"precision", precision}, {"start", start}});
        return trace_layout(experiment.config, *experiment.data, {.steps = 0});
      };
      const LayoutTrace one = weights_of({.stage = 0, .dp = 1});
      for (const ZeroCase& c :
           {ZeroCase{.stage = 3, .dp = 4}, ZeroCase{.stage = 3, .dp = 3, .tp = 2},
            ZeroCase{.stage = 3, .dp = 4, .replicate = 2}})
        expect_equal_bits(one, weights_of(c), precision + (" " + c.name()));
    }
}

// Field case B46: eight owners of a norm of four elements, so that some own nothing of a layer.
TEST(ZeroShards, MayBeSmallOrEmpty) {
  install_allocator();
  for (const int64_t replicate : {1, 2}) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment =
        zero_experiment(directory, {.stage = 3, .dp = 8, .tied = true, .replicate = replicate},
                        {{"hidden_size", 4},
                         {"num_layers", 1},
                         {"num_attention_heads", 2},
                         {"kv_channels", 2},
                         {"ffn_hidden_size", 2}});
    const VerifyReport report =
        verify_layout(proof_config(experiment.config), *experiment.data, {});
    EXPECT_TRUE(report.pass) << report.failure();
  }
}

// Rows of a vocabulary that two tensor-parallel ranks share as 50 and 51: their buckets and shards
// differ, what they copy does not.
TEST(ZeroShards, OfUnevenTensorPartsKeepReplicasEqual) {
  install_allocator();
  for (const int64_t stage : {1, 2, 3}) {
    const LayoutTrace trace = three_adamw_steps(
        {.stage = stage, .dp = 2, .accumulation = 2, .tp = 2, .sequence = true}, "fp32");
    EXPECT_TRUE(trace.replicas_equal) << "stage " << stage;
    EXPECT_EQ(trace.final_weights.at("lm_head.weight").size(0), 101);
  }
}

}  // namespace
}  // namespace sevenfold

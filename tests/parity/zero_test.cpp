// ZeRO stages 1 and 2 against one rank by the proof rules, and against replicated training bit by
// bit.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "parity/zero_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "sevenfold/train/proof/verify.h"

namespace sevenfold {
namespace {

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
    for (const int64_t stage : {1, 2}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = zero_experiment(
          directory, {.stage = stage, .dp = 3, .accumulation = 2, .tied = true},
          {{"optimizer", optimizer}, {"sgd_momentum", 0.9}, {"lr", 0.01}, {"weight_decay", 0.1}});
      const LayoutTrace one =
          trace_layout(one_rank_config(experiment.config), *experiment.data, {.steps = 4});
      const LayoutTrace many = trace_layout(experiment.config, *experiment.data, {.steps = 4});
      for (const auto& [name, weights] : one.final_weights)
        EXPECT_TRUE(at::allclose(many.final_weights.at(name), weights, 0.0, 1e-9))
            << optimizer << " stage " << stage << " " << name;
    }
}

// Gradients all 1: every logical parameter counts once, whoever owns it (field case B06).
TEST(ZeroNorm, OfOnesIsTheRootOfTheNumberOfLogicalParameters) {
  install_allocator();
  for (const int64_t stage : {1, 2})
    for (const bool tied : {false, true})
      for (const int64_t tp : {1, 2})
        for (const int64_t dp : {1, 3}) {
          const TemporaryDirectory directory;
          const testing::Experiment experiment = zero_experiment(
              directory, {.stage = stage, .dp = dp, .tp = tp, .sequence = tp > 1, .tied = tied});
          const LayoutTrace trace =
              trace_layout(experiment.config, *experiment.data, {.steps = 1, .ones = true});
          EXPECT_NEAR(trace.steps[0].gradient_norm, std::sqrt(tied ? 40384.0 : 43616.0), 1e-9);
        }
}

LayoutTrace three_adamw_steps(const ZeroCase& c, const std::string& precision) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = zero_experiment(
      directory, c,
      {{"optimizer", "adam"}, {"weight_decay", 0.1}, {"lr", 0.01}, {"bf16", precision == "bf16"}},
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
        for (const int64_t stage : {1, 2}) {
          if (stage == 2 && accumulation > 1) continue;
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

// Rows of a vocabulary that two tensor-parallel ranks share as 50 and 51: their buckets and shards
// differ, what they copy does not.
TEST(ZeroShards, OfUnevenTensorPartsKeepReplicasEqual) {
  install_allocator();
  for (const int64_t stage : {1, 2}) {
    const LayoutTrace trace = three_adamw_steps(
        {.stage = stage, .dp = 2, .accumulation = 2, .tp = 2, .sequence = true}, "fp32");
    EXPECT_TRUE(trace.replicas_equal) << "stage " << stage;
    EXPECT_EQ(trace.final_weights.at("lm_head.weight").size(0), 101);
  }
}

}  // namespace
}  // namespace sevenfold

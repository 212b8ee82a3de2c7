// Dropout: masks are functions of samples, positions and columns, so layouts and micro batches
// compute the same thing with dropout as without.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "sevenfold/train/proof/verify.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

constexpr double kRate = 0.2;

class DropoutParity : public ::testing::Test {
 protected:
  void SetUp() override { install_allocator(); }

  testing::Experiment gpt(int64_t ranks, const json& overrides) const {
    return testing::g0_experiment(directory_, "D3", ranks, kRate, overrides);
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(DropoutParity, OfDataParallelGptsEqualsOneRank) {
  for (const int64_t dp : {2, 4})
    for (const int64_t micro : {1, 2}) {
      const testing::Experiment experiment = gpt(dp, {{"micro_batch_size", micro}});
      const VerifyReport report =
          verify_layout(proof_config(experiment.config), *experiment.data, {});
      EXPECT_TRUE(report.pass) << "dp " << dp << ", micro batch " << micro << ": "
                               << report.failure();
    }
}

TEST_F(DropoutParity, OfALlamaEqualsOneRank) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::m0_experiment(
      directory, "D3", 2, {{"hidden_dropout", kRate}, {"attention_dropout", kRate}});
  const VerifyReport report = verify_layout(proof_config(experiment.config), *experiment.data, {});
  EXPECT_TRUE(report.pass) << report.failure();
}

LayoutTrace trace(const testing::Experiment& experiment, int64_t steps) {
  return trace_layout(experiment.config, *experiment.data, {.steps = steps});
}

TEST_F(DropoutParity, OfMicroBatchesOfAnySizeIsTheSame) {
  const LayoutTrace one = trace(gpt(1, {{"micro_batch_size", 1}}), 2);
  for (const int64_t micro : {2, 8}) {
    const LayoutTrace many = trace(gpt(1, {{"micro_batch_size", micro}}), 2);
    for (size_t step = 0; step < 2; ++step) {
      EXPECT_NEAR(many.steps[step].loss, one.steps[step].loss, 1e-9 * one.steps[step].loss);
      EXPECT_NEAR(many.steps[step].gradient_norm, one.steps[step].gradient_norm,
                  1e-9 * one.steps[step].gradient_norm);
    }
  }
}

// The same eight samples in each step, and weights that do not move: what changes the loss is that
// the samples are others of the stream.
TEST_F(DropoutParity, IsDrawnAnewWhenSamplesComeAgain) {
  testing::Experiment experiment = gpt(1, {{"lr", 0.0}});
  const LayoutTrace dropping = trace(experiment, 2);
  EXPECT_GT(std::fabs(dropping.steps[0].loss - dropping.steps[1].loss), 1e-3);
  experiment.config.model.hidden_dropout = experiment.config.model.attention_dropout = 0.0;
  const LayoutTrace plain = trace(experiment, 2);
  EXPECT_EQ(plain.steps[0].loss, plain.steps[1].loss);
  EXPECT_GT(std::fabs(dropping.steps[0].loss - plain.steps[0].loss), 1e-3);
}

}  // namespace
}  // namespace sevenfold

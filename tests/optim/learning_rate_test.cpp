#include "sevenfold/optim/learning_rate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace sevenfold {
namespace {

constexpr int64_t kGlobalBatch = 8;

TEST(LearningRate, EqualsTheGoldenRunExactly) {
  std::ifstream file(SEVENFOLD_SOURCE_DIR "/tests/golden/m0_adamw_d1.json");
  const auto golden = nlohmann::json::parse(file);
  const auto& keys = golden.at("overrides");
  const LearningRateConfig config{
      .lr = keys.at("lr"),
      .min_lr = keys.at("min_lr"),
      .warmup_init = 0.0,
      .warmup_samples = keys.at("lr_warmup_iters").get<int64_t>() * kGlobalBatch,
      .decay_samples = keys.at("lr_decay_iters").get<int64_t>() * kGlobalBatch,
      .style = DecayStyle::kCosine};
  int64_t consumed_samples = 0;
  for (const auto& step : golden.at("steps")) {
    EXPECT_EQ(learning_rate(config, consumed_samples), step.at("lr").get<double>());
    consumed_samples += kGlobalBatch;
  }
}

// Field case B53: the rate after n completed steps, which step n + 1 uses.
TEST(LearningRate, FollowsTheFieldCaseAfterEachCompletedStep) {
  const LearningRateConfig config{.lr = 1e-2,
                                  .min_lr = 1e-3,
                                  .warmup_init = 0.0,
                                  .warmup_samples = 2 * kGlobalBatch,
                                  .decay_samples = 10 * kGlobalBatch,
                                  .style = DecayStyle::kCosine};
  const std::vector<double> expected = {0.0,       .005,      .01,   .00965746,
                                        .00868198, .00722208, .0055, .00377792,
                                        .00231802, .00134254, .001};
  for (size_t n = 0; n < expected.size(); ++n) {
    EXPECT_NEAR(learning_rate(config, static_cast<int64_t>(n) * kGlobalBatch), expected[n], 5e-9);
  }
  EXPECT_EQ(learning_rate(config, 11 * kGlobalBatch), 1e-3);
}

TEST(LearningRate, OverriddenLimitsActAtOnce) {
  const LearningRateConfig config{.lr = 5e-3,
                                  .min_lr = 5e-4,
                                  .warmup_init = 0.0,
                                  .warmup_samples = 2 * kGlobalBatch,
                                  .decay_samples = 10 * kGlobalBatch,
                                  .style = DecayStyle::kCosine};
  EXPECT_NEAR(learning_rate(config, 6 * kGlobalBatch), .00275, 5e-9);
  EXPECT_NEAR(learning_rate(config, 7 * kGlobalBatch), .00188896, 5e-9);
}

TEST(LearningRate, WarmupIncludesItsLastStepAndStartsAtItsInitialRate) {
  LearningRateConfig config{.lr = 0.5,
                            .min_lr = 0.25,
                            .warmup_init = 0.125,
                            .warmup_samples = 4,
                            .decay_samples = 8,
                            .style = DecayStyle::kConstant};
  for (const DecayStyle style : {DecayStyle::kConstant, DecayStyle::kLinear, DecayStyle::kCosine}) {
    config.style = style;
    EXPECT_EQ(learning_rate(config, 0), 0.125);
    EXPECT_EQ(learning_rate(config, 2), 0.3125);
    EXPECT_EQ(learning_rate(config, 4), 0.5);
  }
}

TEST(LearningRate, LinearFallsToTheMinimumAndConstantNever) {
  LearningRateConfig config{.lr = 1.0,
                            .min_lr = 0.5,
                            .warmup_init = 0.0,
                            .warmup_samples = 0,
                            .decay_samples = 8,
                            .style = DecayStyle::kLinear};
  EXPECT_EQ(learning_rate(config, 0), 1.0);
  EXPECT_EQ(learning_rate(config, 2), 0.875);
  EXPECT_EQ(learning_rate(config, 8), 0.5);
  EXPECT_EQ(learning_rate(config, 9), 0.5);
  config.style = DecayStyle::kConstant;
  EXPECT_EQ(learning_rate(config, 1000), 1.0);
}

}  // namespace
}  // namespace sevenfold

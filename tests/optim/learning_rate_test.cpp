#include "sevenfold/optim/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(LearningRate, InverseSquareRootFallsFromTheWarmupToTheMinimum) {
  LearningRateConfig config{.lr = 0.8,
                            .min_lr = 0.15,
                            .warmup_init = 0.0,
                            .warmup_samples = 16,
                            .decay_samples = 1000,
                            .style = DecayStyle::kInverseSquareRoot};
  EXPECT_EQ(learning_rate(config, 8), 0.4);
  EXPECT_EQ(learning_rate(config, 16), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 64), 0.8 * 4.0 / 8.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 100), 0.8 * 4.0 / 10.0);
  EXPECT_EQ(learning_rate(config, 900), 0.15) << "0.8 * 4 / 30 is below the minimum";
  EXPECT_EQ(learning_rate(config, 1001), 0.15);
  config.warmup_samples = 0;
  EXPECT_EQ(learning_rate(config, 0), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.4);
}

// Flat up to sample 80, then 20 samples of decay; r = 1/4 after 5, 1/2 after 10 of them.
TEST(LearningRate, WsdStaysFlatAndDecaysAtTheEnd) {
  LearningRateConfig config{.lr = 1.25,
                            .min_lr = 0.25,
                            .warmup_init = 0.0,
                            .warmup_samples = 10,
                            .decay_samples = 100,
                            .style = DecayStyle::kWsd,
                            .wsd_decay_samples = 20};
  struct Case {
    WsdDecayStyle style;
    double quarter, half;
  };
  const double cos_quarter = (1.0 + std::sqrt(0.5)) / 2.0;
  for (const Case& c :
       {Case{WsdDecayStyle::kLinear, 0.75, 0.5},
        {WsdDecayStyle::kCosine, cos_quarter, 0.5},
        {WsdDecayStyle::kExponential, 2.0 / std::sqrt(std::sqrt(2.0)) - 1.0, std::sqrt(2.0) - 1.0},
        {WsdDecayStyle::kMinusSqrt, 0.5, 1.0 - std::sqrt(0.5)}}) {
    config.wsd_style = c.style;
    EXPECT_EQ(learning_rate(config, 5), 0.625);
    EXPECT_EQ(learning_rate(config, 11), 1.25);
    EXPECT_EQ(learning_rate(config, 80), 1.25);
    EXPECT_NEAR(learning_rate(config, 85), 0.25 + c.quarter, 1e-15);
    EXPECT_NEAR(learning_rate(config, 90), 0.25 + c.half, 1e-15);
    EXPECT_NEAR(learning_rate(config, 100), 0.25, 1e-15);
    EXPECT_EQ(learning_rate(config, 101), 0.25);
  }
}

TEST(WeightDecay, MovesOverTheWholeRunAndStaysAtItsEnd) {
  OptimizerConfig config{.weight_decay = 0.125, .end_weight_decay = 0.625};
  EXPECT_EQ(weight_decay(config, 70, 100), 0.125) << "constant";
  config.weight_decay_style = WeightDecayStyle::kLinear;
  EXPECT_EQ(weight_decay(config, 0, 100), 0.125);
  EXPECT_DOUBLE_EQ(weight_decay(config, 50, 100), 0.375);
  EXPECT_EQ(weight_decay(config, 100, 100), 0.625);
  EXPECT_EQ(weight_decay(config, 1000, 100), 0.625);
  config.weight_decay_style = WeightDecayStyle::kCosine;
  EXPECT_EQ(weight_decay(config, 0, 100), 0.125);
  // Slow at both ends: a quarter of the way is 1 - (1 + cos(pi/4))/2 of the difference.
  EXPECT_NEAR(weight_decay(config, 25, 100), 0.125 + 0.5 * (1.0 - std::sqrt(0.5)) / 2.0, 1e-15);
  EXPECT_NEAR(weight_decay(config, 50, 100), 0.375, 1e-15);
  EXPECT_EQ(weight_decay(config, 100, 100), 0.625);
}

}  // namespace
}  // namespace sevenfold

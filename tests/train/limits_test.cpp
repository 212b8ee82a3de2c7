#include "sevenfold/train/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

TEST(ResidentBytes, CountWeightsGradientsAndStatesOfAllRanks) {
  const TemporaryDirectory directory;
  const Config sgd = testing::m0_experiment(directory, "D3", 4).config;
  EXPECT_EQ(resident_bytes(sgd), 43'616.0 * 2 * 8 * 4);
  const Config adam =
      testing::m0_experiment(directory, "D3", 2, {{"optimizer", "adam"}}, {{"precision", "fp32"}})
          .config;
  EXPECT_EQ(resident_bytes(adam), 43'616.0 * 4 * 4 * 2);
  Config reduced = adam;  // 2 bytes of weight; gradient, two moments and a master weight of 4
  reduced.run.precision = Precision::kBf16;
  EXPECT_EQ(resident_bytes(reduced), 43'616.0 * (2 + 4 * 4) * 2);
  reduced.parallel.zero = ZeroStage::kOptimizer;  // states once
  EXPECT_EQ(resident_bytes(reduced), 43'616.0 * ((2 + 4) * 2 + 3 * 4));
  reduced.parallel.zero = ZeroStage::kGradients;  // gradients too
  EXPECT_EQ(resident_bytes(reduced), 43'616.0 * (2 * 2 + 4 * 4));
  reduced.parallel.zero = ZeroStage::kParameters;  // and weights
  EXPECT_EQ(resident_bytes(reduced), 43'616.0 * (2 + 4 * 4));
  reduced.mesh.dp_replicate = 2;  // two sets of one shard
  EXPECT_EQ(resident_bytes(reduced), 43'616.0 * (2 + 4 * 4) * 2);
  reduced.pipeline.post_validation = true;  // copies of states and weights
  EXPECT_EQ(resident_bytes(reduced), 43'616.0 * (2 + 4 * 4 + 3 * 4 + 2) * 2);
}

TEST(CheckFitsMachine, RefusesWhatTheMachineCannotHold) {
  const TemporaryDirectory directory;
  Config config = testing::m0_experiment(directory, "D3", 2).config;
  EXPECT_NO_THROW(check_fits_machine(config));
  config.mesh.dp = 2048;
  EXPECT_THROW(check_fits_machine(config), ConfigError);
  config.mesh.dp = 2;
  config.model.num_layers = 1'000'000'000;
  try {
    check_fits_machine(config);
    FAIL() << "9e12 parameters fit nowhere";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("GiB"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("2 ranks"));
  }
}

}  // namespace
}  // namespace sevenfold

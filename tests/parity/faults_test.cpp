// Every planted fault must make `verify` fail: a parity test that cannot fail proves nothing.

#include <gtest/gtest.h>

#include <algorithm>

#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/verify.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

class PlantedFault : public ::testing::TestWithParam<FaultInfo> {};

TEST_P(PlantedFault, IsCaughtByVerify) {
#ifndef SEVENFOLD_FAULTS
  GTEST_SKIP() << "this build holds no planted faults (SEVENFOLD_FAULTS=OFF)";
#endif
  install_allocator();
  const TemporaryDirectory directory;
  // Unequal numbers of trained tokens, accumulation, a tied table, and a step that leaves samples
  // over: every fault of the slice shows here.
  const testing::Experiment experiment = testing::m0_experiment(
      directory, "D3", 2,
      {{"untie_embeddings_and_output_weights", false}, {"global_batch_size", 4}});
  const Config config = proof_config(experiment.config);
  const VerifyReport report = verify_layout(
      config, *experiment.data, {.steps = 2, .faults = FaultSet().enable(GetParam().fault)});
  EXPECT_FALSE(report.pass) << GetParam().name << ": " << GetParam().meaning;
  EXPECT_FALSE(report.failure().empty());
}

INSTANTIATE_TEST_SUITE_P(All, PlantedFault, ::testing::ValuesIn(all_faults()),
                         [](const auto& instance) {
                           std::string name(instance.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(PlantedFaults, AreOffUnlessAskedFor) {
  EXPECT_FALSE(FaultSet().any());
}

}  // namespace
}  // namespace sevenfold

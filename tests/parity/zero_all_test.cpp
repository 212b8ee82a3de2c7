// Every layout of zero_cases.h against one rank, by the proof rules.

#include <gtest/gtest.h>

#include "parity/zero_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/verify.h"

namespace sevenfold {
namespace {

TEST(EveryZeroLayout, ComputesWhatOneRankComputes) {
  install_allocator();
  for (const testing::ZeroCase& layout : testing::zero_cases(testing::all_zero_combinations())) {
    const testing::TemporaryDirectory directory;
    const testing::Experiment experiment = zero_experiment(directory, layout);
    const VerifyReport report =
        verify_layout(proof_config(experiment.config), *experiment.data, {});
    EXPECT_TRUE(report.pass) << layout.name() << ": " << report.failure();
  }
}

}  // namespace
}  // namespace sevenfold

// Every layout of tensor_cases.h against one rank, by the proof rules.

#include <gtest/gtest.h>

#include "parity/tensor_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/verify.h"

namespace sevenfold {
namespace {

TEST(EveryTensorParallelLayout, ComputesWhatOneRankComputes) {
  install_allocator();
  for (const testing::TensorCase& layout :
       testing::tensor_cases(testing::all_tensor_combinations())) {
    const testing::TemporaryDirectory directory;
    const testing::Experiment experiment = tensor_experiment(directory, layout);
    const VerifyReport report =
        verify_layout(proof_config(experiment.config), *experiment.data, {});
    EXPECT_TRUE(report.pass) << layout.name() << ": " << report.failure();
  }
}

}  // namespace
}  // namespace sevenfold

// Every schedule with every number of ranks and micro batches, tied or not, with every cut of the
// layers; data and tensor parallelism, ZeRO and recomputation in turn.

#include <gtest/gtest.h>

#include "parity/pipeline_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/verify.h"

namespace sevenfold {
namespace {

std::vector<testing::PipelineCase> every_schedule() {
  // The last four factors of all_pipeline_combinations.
  const std::vector<testing::Combination> rest = testing::all_combinations({2, 2, 3, 2});
  std::vector<testing::PipelineCase> cases;
  size_t turn = 0;
  for (testing::Combination c :
       testing::all_combinations({testing::pipeline_algorithms().size(), 2, 5, 2, 3})) {
    const testing::Combination& others = rest[turn % rest.size()];
    c.insert(c.end(), others.begin(), others.end());
    const testing::PipelineCase one = testing::pipeline_case(c);
    if (!testing::is_possible(one)) continue;
    cases.push_back(one);
    turn += 5;  // coprime to their number
  }
  return cases;
}

class EveryPipelineLayout : public ::testing::TestWithParam<testing::PipelineCase> {};

TEST_P(EveryPipelineLayout, ComputesWhatOneRankComputes) {
  install_allocator();
  const testing::TemporaryDirectory directory;
  const testing::Experiment experiment = testing::pipeline_experiment(directory, GetParam());
  const VerifyReport report =
      verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 2});
  EXPECT_TRUE(report.pass) << report.failure();
}

INSTANTIATE_TEST_SUITE_P(All, EveryPipelineLayout, ::testing::ValuesIn(every_schedule()),
                         [](const auto& instance) { return instance.param.name(); });

}  // namespace
}  // namespace sevenfold

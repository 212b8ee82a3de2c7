// SAME(REF): layouts against one rank, by the proof rules, on data with unequal numbers of trained
// tokens.

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

struct Case {
  std::string data_set;
  int64_t dp;
  int64_t accumulation;
  int64_t micro = 1;
  bool tied = false;
  double clip = 0.0;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return c.data_set + "_dp" + std::to_string(c.dp) + "_acc" + std::to_string(c.accumulation) +
         "_mbs" + std::to_string(c.micro) + (c.tied ? "_tied" : "") + (c.clip > 0 ? "_clip" : "");
}

json overrides_of(const Case& c) {
  return {{"micro_batch_size", c.micro},
          {"global_batch_size", c.micro * c.dp * c.accumulation},
          {"untie_embeddings_and_output_weights", !c.tied},
          {"clip_grad", c.clip}};
}

class DataParallel : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { install_allocator(); }
};

TEST_P(DataParallel, ComputesWhatOneRankComputes) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::m0_experiment(
      directory, GetParam().data_set, GetParam().dp, overrides_of(GetParam()));
  const VerifyReport report = verify_layout(proof_config(experiment.config), *experiment.data, {});
  EXPECT_TRUE(report.pass) << report.failure();
  EXPECT_EQ(report.axes_used, (std::map<std::string, bool>{{"dp", true}}));
  ASSERT_EQ(report.steps.size(), 3U);
  for (const VerifyStep& step : report.steps) EXPECT_TRUE(std::isfinite(step.loss_layout));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* data_set : {"D1", "D3", "D4"})
    for (const int64_t dp : {2, 4})
      for (const int64_t accumulation : {1, 2, 4}) all.push_back({data_set, dp, accumulation});
  all.push_back({.data_set = "D3", .dp = 4, .accumulation = 2, .tied = true});
  all.push_back(
      {.data_set = "D4", .dp = 2, .accumulation = 2, .micro = 2, .tied = true, .clip = 0.5});
  all.push_back({.data_set = "D3", .dp = 3, .accumulation = 2});
  all.push_back({.data_set = "D1", .dp = 2, .accumulation = 2, .micro = 3});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Layouts, DataParallel, ::testing::ValuesIn(cases()), name_of);

// Gradients all 1: the norm counts every logical parameter once, in every layout.
TEST(GradientNorm, OfOnesIsTheRootOfTheNumberOfLogicalParameters) {
  install_allocator();
  for (const bool tied : {false, true})
    for (const int64_t dp : {1, 2, 4}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = testing::m0_experiment(
          directory, "D3", dp, {{"untie_embeddings_and_output_weights", !tied}});
      const LayoutTrace trace =
          trace_layout(experiment.config, *experiment.data, {.steps = 1, .ones = true});
      EXPECT_NEAR(trace.steps[0].gradient_norm, tied ? 200.9577 : 208.8444, 5e-5);
      EXPECT_NEAR(trace.steps[0].gradient_norm, std::sqrt(tied ? 40384.0 : 43616.0), 1e-9);
    }
}

// With one bucket or one per layer, reduced early or late: the same bits.
TEST(GradientBuckets, DoNotChangeABit) {
  install_allocator();
  const TemporaryDirectory directory;
  testing::Experiment experiment =
      testing::m0_experiment(directory, "D3", 2, {{"untie_embeddings_and_output_weights", false}});
  std::vector<LayoutTrace> traces;
  for (const int64_t elements : {int64_t{1}, int64_t{10'000}, int64_t{40'000'000}}) {
    experiment.config.run.gradient_bucket_elements = elements;
    traces.push_back(trace_layout(experiment.config, *experiment.data, {.steps = 2}));
  }
  for (const LayoutTrace& trace : traces) {
    EXPECT_EQ(trace.steps[1].loss, traces[0].steps[1].loss);
    for (const auto& [name, weights] : trace.final_weights)
      EXPECT_TRUE(at::equal(weights, traces[0].final_weights.at(name))) << name;
  }
}

TEST(DataParallel, GivesTheSameBitsWhenRunAgain) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      testing::m0_experiment(directory, "D1", 4, {{"optimizer", "adam"}, {"clip_grad", 1.0}},
                             {{"precision", "fp32"}, {"start", "init"}});
  const LayoutTrace first = trace_layout(experiment.config, *experiment.data, {.steps = 3});
  const LayoutTrace second = trace_layout(experiment.config, *experiment.data, {.steps = 3});
  for (size_t step = 0; step < 3; ++step) {
    EXPECT_EQ(first.steps[step].loss, second.steps[step].loss);
    EXPECT_EQ(first.steps[step].gradient_norm, second.steps[step].gradient_norm);
  }
  for (const auto& [name, weights] : first.final_weights)
    EXPECT_TRUE(at::equal(weights, second.final_weights.at(name))) << name;
}

TEST(SinglePrecision, FollowsOneRankToItsRounding) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      testing::m0_experiment(directory, "D3", 4, json::object(), {{"precision", "fp32"}});
  const VerifyReport report = verify_layout(proof_config(experiment.config), *experiment.data, {});
  EXPECT_TRUE(report.pass) << report.failure();
  EXPECT_EQ(report.tolerance, 1e-4);
}

}  // namespace
}  // namespace sevenfold

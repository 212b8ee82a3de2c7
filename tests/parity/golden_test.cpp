// One rank against the values of an independent implementation (fp64, 1e-9).

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

constexpr double kTolerance = 1e-9;

json read_golden(const std::string& name) {
  std::ifstream file(SEVENFOLD_SOURCE_DIR "/tests/golden/" + name + ".json");
  return json::parse(file);
}

testing::Experiment golden_experiment(const json& golden, const TemporaryDirectory& directory,
                                      int64_t ranks, const json& layout = json::object()) {
  json overrides = golden["overrides"];
  if (!layout.is_null()) overrides.update(layout);
  const std::string data_set = overrides["train_data_path"];
  overrides.erase("train_data_path");
  return testing::m0_experiment(directory, data_set, ranks, overrides, golden["sevenfold"]);
}

void expect_relative(double value, const json& expected) {
  EXPECT_NEAR(value, expected.get<double>(), kTolerance * std::fabs(expected.get<double>()));
}

void expect_steps(const json& golden, const LayoutTrace& trace) {
  ASSERT_EQ(trace.steps.size(), golden["steps"].size());
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const json& step = golden["steps"][i];
    const StepResult& result = trace.steps[i];
    SCOPED_TRACE("step " + std::to_string(i + 1));
    expect_relative(result.loss, step["lm_loss"]);
    expect_relative(result.gradient_norm, step["grad_norm"]);
    EXPECT_EQ(result.learning_rate, step["lr"].get<double>());
    EXPECT_EQ(result.trained_tokens, step["trained_tokens"].get<int64_t>());
    if (step.contains("clip_factor")) expect_relative(result.clip_factor, step["clip_factor"]);
  }
}

double largest_l2(const json& tensors) {
  double largest = 0.0;
  for (const json& tensor : tensors) largest = std::max(largest, tensor["l2"].get<double>());
  return largest;
}

// Rules of golden/README: l2 relative 1e-9; entries and sums with a floor of 1e-3 of the largest
// l2.
void expect_tensors(const json& expected, const std::map<std::string, at::Tensor>& tensors) {
  ASSERT_EQ(tensors.size(), expected.size());
  const double floor = 1e-3 * largest_l2(expected);
  for (const auto& [name, values] : tensors) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(expected.contains(name));
    const json& golden = expected[name];
    const auto l2 = golden["l2"].get<double>();
    const double scale = std::max(l2, floor);
    EXPECT_NEAR(values.norm().item<double>(), l2, kTolerance * scale);
    EXPECT_NEAR(values.sum().item<double>(), golden["sum"].get<double>(),
                kTolerance * std::sqrt(static_cast<double>(values.numel())) * scale);
    if (!golden.contains("entries")) continue;
    const at::Tensor flat = values.contiguous().view({-1});
    for (size_t i = 0; i < golden["indices"].size(); ++i)
      EXPECT_NEAR(flat[golden["indices"][i].get<int64_t>()].item<double>(),
                  golden["entries"][i].get<double>(), kTolerance * scale);
  }
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, LossesNormsGradientsAndWeightsAgree) {
  install_allocator();
  const json golden = read_golden(GetParam());
  const TemporaryDirectory directory;
  const testing::Experiment experiment = golden_experiment(golden, directory, 1);
  EXPECT_EQ(num_parameters(experiment.config.model), golden["parameter_count"].get<int64_t>());
  const LayoutTrace trace = trace_layout(experiment.config, *experiment.data,
                                         {.steps = static_cast<int64_t>(golden["steps"].size())});
  expect_steps(golden, trace);
  expect_tensors(golden["first_gradient"], trace.gradients.front());
  expect_tensors(golden["final_weights"], trace.final_weights);
}

// AdamW, clipping and warm-up in layouts: `verify` itself uses SGD.
class GoldenLayout : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_on(int64_t ranks, const json& layout) {
    install_allocator();
    const json golden = read_golden(GetParam());
    const TemporaryDirectory directory;
    const testing::Experiment experiment = golden_experiment(golden, directory, ranks, layout);
    const LayoutTrace trace = trace_layout(experiment.config, *experiment.data,
                                           {.steps = static_cast<int64_t>(golden["steps"].size())});
    EXPECT_TRUE(trace.replicas_equal);
    expect_steps(golden, trace);
    expect_tensors(golden["first_gradient"], trace.gradients.front());
    expect_tensors(golden["final_weights"], trace.final_weights);
  }
};

TEST_P(GoldenLayout, HoldsOnFourDataParallelRanks) {
  expect_on(4, {});
}

TEST_P(GoldenLayout, HoldsOnTwoTensorParallelRanks) {
  expect_on(2, {{"tensor_model_parallel_size", 2}});
}

TEST_P(GoldenLayout, HoldsOnFourRanksThatCutSequences) {
  expect_on(4, {{"tensor_model_parallel_size", 4}, {"sequence_parallel", true}});
}

constexpr const char* kCases[] = {
    "m0_d3",        "m0_tied_d1",  "m0l_d3",           "g0_d3",
    "m0_qknorm_d4", "m0_adamw_d1", "m0_llama3rope_d3", "x_m0_clip_d3"};
const auto kName = [](const auto& instance) { return std::string(instance.param); };
INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(kCases), kName);
INSTANTIATE_TEST_SUITE_P(Cases, GoldenLayout, ::testing::ValuesIn(kCases), kName);

}  // namespace
}  // namespace sevenfold

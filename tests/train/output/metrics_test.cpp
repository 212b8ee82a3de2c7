#include "sevenfold/train/output/metrics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "sevenfold/core/error.h"
#include "sevenfold/core/random.h"

namespace sevenfold {
namespace {

StepMetrics sample_metrics() {
  return {.iteration = 1,
          .loss = 5.5,
          .grad_norm = 2.25,
          .lr = 0.001,
          .tokens = 256,
          .trained_tokens = 248,
          .step_time_s = 0.5,
          .tokens_per_s = 496.0,
          .bubble_rate = 0.0,
          .exposed_communication_s = 0.125,
          .peak_memory = {.total_bytes = 21, .category_bytes = {1, 2, 3, 4, 11}}};
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Metrics, LinesHaveTheKeysOfTheContractInOrder) {
  EXPECT_EQ(to_json_line(sample_metrics()),
            R"({"iteration":1,"loss":5.5,"grad_norm":2.25,"lr":0.001,"tokens":256,)"
            R"("trained_tokens":248,"step_time_s":0.5,)"
            R"("tokens_per_s":496.0,"bubble_rate":0.0,"exposed_communication_s":0.125,)"
            R"("peak_memory_bytes":{"total":21,"parameters":1,"gradients":2,"optimizer":3,)"
            R"("activations":4,"communication":11},"loss_scale":1.0,"skipped":false})");
  EXPECT_EQ(
      to_json_line(EvaluationMetrics{.iteration = 10, .loss = 2.5, .tokens = 7, .samples = 3}),
      R"({"iteration":10,"validation_loss":2.5,"validation_tokens":7,"validation_samples":3})");
  EXPECT_EQ(to_json_line(EvaluationMetrics{
                .split = Split::kTest, .iteration = 10, .loss = 2.5, .tokens = 7, .samples = 3}),
            R"({"iteration":10,"test_loss":2.5,"test_tokens":7,"test_samples":3})");
  StepMetrics metrics = sample_metrics();
  metrics.mfu = 0.375;
  metrics.hfu = 0.5;
  EXPECT_NE(to_json_line(metrics).find(R"("mfu":0.375,"hfu":0.5)"), std::string::npos);
}

TEST(Metrics, NumbersReadBackToTheSameBits) {
  const ElementStream stream = ElementStream::hot("metrics");
  std::vector<double> values = {0.1 + 0.2, 6.1785919663602815, 5e-324, 1.7976931348623157e308,
                                -0.0};
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto value = std::bit_cast<double>(stream.bits(i));
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) {
    StepMetrics metrics = sample_metrics();
    metrics.loss = value;
    const double back = nlohmann::json::parse(to_json_line(metrics)).at("loss").get<double>();
    EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value)) << value;
  }
}

TEST(Metrics, NumbersThatAreNotFiniteAreNull) {
  StepMetrics metrics = sample_metrics();
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.grad_norm = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(to_json_line(metrics));
  EXPECT_TRUE(json.at("loss").is_null());
  EXPECT_TRUE(json.at("grad_norm").is_null());
}

TEST(MetricsWriter, HandsOverEachLineAtOnceAndReplacesAnEarlierRun) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "metrics.jsonl";
  {
    MetricsWriter writer(path);
    writer.write(sample_metrics());
    writer.write(EvaluationMetrics{.iteration = 1, .loss = 2.5, .tokens = 7});
    EXPECT_EQ(lines_of(path).size(), 2u);  // while the writer is still open
  }
  const MetricsWriter next_run(path);
  EXPECT_TRUE(lines_of(path).empty());
}

// A run of 6 steps with validations after 2, 4 and 6 and a test, killed while it wrote another
// line.
std::vector<std::string> write_killed_run(const std::filesystem::path& path) {
  {
    MetricsWriter writer(path);
    StepMetrics step = sample_metrics();
    for (step.iteration = 1; step.iteration <= 6; ++step.iteration) {
      step.loss = std::numeric_limits<double>::quiet_NaN();
      writer.write(step);
      if (step.iteration % 2 == 0) writer.write(EvaluationMetrics{.iteration = step.iteration});
    }
    writer.write(EvaluationMetrics{.split = Split::kTest, .iteration = 6});
  }
  const std::vector<std::string> whole = lines_of(path);
  std::ofstream(path, std::ios::app) << whole.front().substr(0, 40);
  return whole;
}

TEST(MetricsWriter, KeepsTheLinesUpToTheStepThatTheRunContinuesAfter) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "continued.jsonl";
  const std::vector<std::string> whole = write_killed_run(path);
  ASSERT_EQ(whole.size(), 10u);
  StepMetrics next = sample_metrics();
  next.iteration = 5;
  {
    MetricsWriter writer(path, 4);
    EXPECT_EQ(lines_of(path), std::vector(whole.begin(), whole.begin() + 6)) << "before any step";
    writer.write(next);
  }
  std::vector<std::string> expected(whole.begin(), whole.begin() + 6);
  expected.push_back(to_json_line(next));
  EXPECT_EQ(lines_of(path), expected);
  { const MetricsWriter writer(path, 5); }
  EXPECT_EQ(lines_of(path), expected) << "nothing was behind the step";
}

TEST(MetricsWriter, DropsOnlyWhatIsTornWhereNothingIsBehind) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "torn.jsonl";
  const std::vector<std::string> whole = write_killed_run(path);
  { const MetricsWriter writer(path, 6); }
  EXPECT_EQ(lines_of(path), whole);
}

TEST(MetricsWriter, ContinuesInAFolderThatHoldsNoMetrics) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "moved.jsonl";
  std::filesystem::remove(path);
  MetricsWriter writer(path, 100);
  EXPECT_TRUE(lines_of(path).empty());
  writer.write(sample_metrics());
  EXPECT_EQ(lines_of(path).size(), 1u);
}

TEST(MetricsWriter, NamesTheFileThatItCannotWrite) {
  try {
    const MetricsWriter writer("/nowhere/metrics.jsonl");
    FAIL() << "opened a file in a folder that does not exist";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "train: cannot open /nowhere/metrics.jsonl: No such file or directory");
  }
  try {
    const MetricsWriter writer("/nowhere/metrics.jsonl", 3);
    FAIL() << "continued a file in a folder that does not exist";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "train: cannot write /nowhere/metrics.jsonl: No such file or directory");
  }
  MetricsWriter full("/dev/full");
  try {
    full.write(sample_metrics());
    FAIL() << "wrote to a full device";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "train: cannot write /dev/full: No space left on device");
  }
}

}  // namespace
}  // namespace sevenfold

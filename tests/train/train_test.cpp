#include "sevenfold/train/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "sevenfold/config/load.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

// Trains M0 on D1 with validation on D3, writing to `directory`/output/test/test/m0.
struct Job {
  explicit Job(const TemporaryDirectory& directory, const json& overrides = json::object(),
               int64_t ranks = 2) {
    install_allocator();
    json keys = {{"train_iters", 4},
                 {"eval_interval", 2},
                 {"eval_iters", 1},
                 {"valid_data_path", directory / "D3"}};
    keys.update(overrides);
    testing::write_data_set("D3", directory / "D3");
    config = testing::m0_experiment(directory, "D1", ranks, keys, {{"precision", "fp32"}}).config;
  }
  Config config;
};

std::vector<json> metrics_lines(const Config& config) {
  std::istringstream text(testing::read_text(config.run.directory + "/metrics.jsonl"));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(Train, WritesALinePerStepAndPerValidation) {
  const TemporaryDirectory directory;
  Job job(directory);
  const TrainOutcome outcome = train(job.config, {});
  EXPECT_EQ(outcome.iterations, 4);
  ASSERT_TRUE(outcome.validation_loss.has_value());
  const auto lines = metrics_lines(job.config);
  ASSERT_EQ(lines.size(), 6U);  // 1, 2, validation, 3, 4, validation
  EXPECT_EQ(lines[0]["iteration"], 1);
  EXPECT_EQ(lines[2]["iteration"], 2);
  EXPECT_EQ(lines[2]["validation_tokens"], 126);
  EXPECT_EQ(lines[5]["validation_loss"].get<double>(), *outcome.validation_loss);
  EXPECT_EQ(lines[4]["loss"].get<double>(), outcome.loss);
  EXPECT_EQ(lines[4]["peak_memory_bytes"]["parameters"], 43'616 * 4);
  EXPECT_EQ(lines[4]["peak_memory_bytes"]["gradients"], 43'616 * 4);
  EXPECT_EQ(lines[0]["tokens"], 8 * 32);
  EXPECT_EQ(lines[0]["trained_tokens"], 248);
  EXPECT_NEAR(lines[0]["tokens_per_s"].get<double>() * lines[0]["step_time_s"].get<double>(), 256.0,
              1e-6);
  for (const char* key : {"grad_norm", "lr", "tokens", "step_time_s", "tokens_per_s", "bubble_rate",
                          "exposed_communication_s"})
    EXPECT_TRUE(lines[0].contains(key)) << key;
}

TEST(Train, OnlyValidatesWhenTrainingIsSkipped) {
  const TemporaryDirectory directory;
  Job job(directory);
  job.config.run.skip_train = true;
  const TrainOutcome outcome = train(job.config, {});
  EXPECT_EQ(outcome.iterations, 0);
  const auto lines = metrics_lines(job.config);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["iteration"], 0);
  EXPECT_EQ(lines[0]["validation_samples"], 8);
  EXPECT_EQ(lines[0]["validation_loss"].get<double>(), outcome.validation_loss);
  job.config.run.eval_iters = 0;
  EXPECT_THROW(train(job.config, {}), ConfigError);
}

// D3 has the eight samples of one evaluation, so test set and validation set are one and the same.
TEST(Train, TestsOnceAfterTheLastStep) {
  const TemporaryDirectory directory;
  Job job(directory, {{"test_data_path", directory / "D3"}});
  train(job.config, {});
  auto lines = metrics_lines(job.config);
  ASSERT_EQ(lines.size(), 7U);  // 1, 2, validation, 3, 4, validation, test
  EXPECT_EQ(lines[6]["iteration"], 4);
  EXPECT_EQ(lines[6]["test_loss"], lines[5]["validation_loss"]);
  EXPECT_EQ(lines[6]["test_tokens"], 126);
  EXPECT_EQ(lines[6]["test_samples"], 8);
  job.config.run.exit_interval = 2;
  train(job.config, {});
  EXPECT_TRUE(metrics_lines(job.config).back().contains("validation_loss")) << "it goes on later";
  job.config.run.skip_train = true;
  train(job.config, {});
  lines = metrics_lines(job.config);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1]["test_loss"], lines[0]["validation_loss"]);
}

// At the end, also of a run that is stopped: by stage, at the step boundary and at the peak.
TEST(Train, ReportsItsMemoryAtTheEnd) {
  for (const json& overrides : {json::object(), json{{"exit_interval", 2}}}) {
    const TemporaryDirectory directory;
    const Job job(directory, overrides);
    train(job.config, {});
    const json report = json::parse(testing::read_text(job.config.run.directory + "/memory.json"));
    ASSERT_EQ(report["stages"].size(), 1U);
    const json& stage = report["stages"][0];
    EXPECT_EQ(stage["step_boundary"]["parameters"], 43616 * 4);
    EXPECT_EQ(stage["step_boundary"]["communication"], 0);
    EXPECT_GT(stage["peak"]["total"], stage["step_boundary"]["total"]);
    EXPECT_EQ(stage["peak"], metrics_lines(job.config).front()["peak_memory_bytes"])
        << "no step needs more than the first";
  }
}

TEST(Train, RunsAsLongAsTheSamplesLast) {
  const TemporaryDirectory directory;
  const Job job(directory, {{"eval_iters", 0}, {"train_iters", nullptr}, {"train_samples", 30}});
  EXPECT_EQ(train(job.config, {}).iterations, 3);
}

TEST(Train, StopsAtAnExitIntervalAndValidates) {
  const TemporaryDirectory directory;
  Job job(directory);
  job.config.run.exit_interval = 1;
  const TrainOutcome outcome = train(job.config, {});
  EXPECT_EQ(outcome.iterations, 1);
  EXPECT_EQ(outcome.stop, StopReason::kExitInterval);
  EXPECT_EQ(metrics_lines(job.config).back()["validation_loss"].get<double>(),
            outcome.validation_loss);
}

TEST(Train, RunsAndValidatesOnCyclicData) {
  const TemporaryDirectory directory;
  Job job(directory);
  job.config.data.loader = LoaderKind::kCyclic;
  const TrainOutcome outcome = train(job.config, {});
  EXPECT_EQ(outcome.stop, StopReason::kNone);
  EXPECT_GT(outcome.validation_loss, 0.0);
}

TEST(Train, RefusesCyclicDataThatIsTooSmallBeforeAnythingIsWritten) {
  const TemporaryDirectory directory;
  Job job(directory);
  job.config.data.loader = LoaderKind::kCyclic;
  job.config.batch.micro_batch_size = 1'000'000;
  EXPECT_THROW(train(job.config, {}), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(job.config.run.directory));
}

TEST(Train, GivesTheSameLossesWhenRunAgain) {
  const TemporaryDirectory directory;
  Job job(directory);
  std::vector<std::vector<double>> losses;
  for (int run = 0; run < 2; ++run) {
    train(job.config, {});
    losses.emplace_back();
    for (const json& line : metrics_lines(job.config))
      losses.back().push_back(line.value("loss", line.value("validation_loss", NAN)));
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0].size(), 6U) << "the second run replaces the metrics of the first";
}

TEST(Train, WritesAConfigurationThatLoadsAgain) {
  const TemporaryDirectory directory;
  Job job(directory);
  train(job.config, {});
  LoadOptions options;
  options.file = job.config.run.directory + "/config.resolved.yaml";
  options.ranks = 2;
  options.environment = [](const std::string&) { return std::nullopt; };
  const Config again = load_config(options);
  EXPECT_EQ(again.model.hidden_size, 32);
  EXPECT_EQ(again.learning_rate.lr, 0.1);
  EXPECT_EQ(again.data.eod_token_id, 0);
  EXPECT_EQ(again.run.precision, Precision::kFp32);
}

TEST(Train, RefusesANonEmptyDirectoryWithoutResume) {
  const TemporaryDirectory directory;
  Job job(directory);
  train(job.config, {});
  EXPECT_THROW(train(job.config, {.resume = Resume::kNone}), ConfigError);
}

TEST(Train, RefusesATokenBeyondTheVocabularyBeforeAnythingIsWritten) {
  const TemporaryDirectory directory;
  Job job(directory, {{"vocab_size", 101}});
  job.config.model.vocab_size = 50;
  try {
    train(job.config, {});
    FAIL() << "trained on tokens that the model does not know";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("50"));
  }
  EXPECT_FALSE(std::filesystem::exists(job.config.run.directory));
}

TEST(Train, PreparesTextThatIsMissingAndComparesWithBigrams) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "the cat " + std::to_string(i * 7 % 10) + " sat on the mat. ";
  testing::write_text(directory / "a.txt", text);
  testing::write_text(directory / "b.txt", text.substr(0, 2000));
  const json prepare = {
      {"input", {directory / "*.txt"}}, {"tokenizer", "byte"}, {"output", directory / "text"}};
  const json keys = {{"train_iters", 2},
                     {"eval_interval", 2},
                     {"full_validation", true},
                     {"vocab_size", 257},
                     {"data_path", directory / "text"},
                     {"train_data_path", nullptr},
                     {"split", "50,50,0"},
                     {"eval_iters", 1}};
  install_allocator();
  json overrides = testing::m0_overrides();
  overrides.update(keys);
  LoadOptions options;
  options.file = testing::write_experiment(
      directory, overrides, {{"precision", "fp32"}, {"eod_token_id", 256}, {"prepare", prepare}});
  options.ranks = 2;
  options.environment = [](const std::string&) { return std::nullopt; };
  const TrainOutcome outcome = train(load_config(options), {});
  EXPECT_TRUE(std::filesystem::exists(directory / "text.bin"));
  ASSERT_TRUE(outcome.bigram_cross_entropy.has_value());
  EXPECT_GT(*outcome.bigram_cross_entropy, 0.5);
  EXPECT_LT(*outcome.bigram_cross_entropy, std::log(257.0));
}

}  // namespace
}  // namespace sevenfold

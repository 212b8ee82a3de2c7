// Whole runs that save, stop and go on in their folder.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <sstream>

#include "sevenfold/checkpoint/folder.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/run_start.h"
#include "sevenfold/train/train.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

// M0 on D1 with validation on D3, ZeRO-1 on two ranks; saves every second step.
class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    install_allocator();
    testing::write_data_set("D3", directory_ / "D3");
    config_ = testing::m0_experiment(directory_, "D1", 2,
                                     {{"train_iters", 6},
                                      {"optimizer", "adam"},
                                      {"lr", 0.003},
                                      {"eval_interval", 3},
                                      {"eval_iters", 1},
                                      {"valid_data_path", directory_ / "D3"},
                                      {"use_distributed_optimizer", true}},
                                     {{"precision", "fp32"}})
                  .config;
    use_folder("run");
    config_.checkpoint.interval = 2;
  }
  void use_folder(const std::string& name) {
    config_.run.directory = directory_ / name;
    config_.checkpoint.save_directory = config_.run.directory + "/checkpoints";
  }
  // As a run that is stopped after so many steps: it saves then.
  void train_to(int64_t steps, const TrainOptions& options = {}) {
    Config config = config_;
    if (steps < config.run.train_iters) config.run.exit_interval = steps;
    train(config, options);
  }
  std::string metrics() const {
    return testing::read_text(config_.run.directory + "/metrics.jsonl");
  }
  // Without what a clock has measured.
  std::vector<json> results() const {
    std::istringstream text(metrics());
    std::vector<json> lines;
    for (std::string line; std::getline(text, line);) {
      json entry = json::parse(line);
      for (const char* key : {"step_time_s", "tokens_per_s", "bubble_rate",
                              "exposed_communication_s", "peak_memory_bytes"})
        entry.erase(key);
      lines.push_back(entry);
    }
    return lines;
  }
  fs::path checkpoints() const { return config_.checkpoint.save_directory; }
  std::string refusal(const TrainOptions& options = {}) const {
    try {
      train(config_, options);
    } catch (const ConfigError& error) {
      return error.what();
    } catch (const DataError& error) {
      return error.what();
    }
    return "trained";
  }

  TemporaryDirectory directory_;
  Config config_;
};

TEST_F(Resume, GoesOnFromTheNewestCheckpointWithTheSameResults) {
  train_to(6);
  const auto straight = results();
  EXPECT_THAT(steps_in(checkpoints()), ElementsAre(2, 4, 6));
  use_folder("stopped");
  train_to(3);
  EXPECT_THAT(steps_in(checkpoints()), ElementsAre(2, 3));
  train_to(6);
  EXPECT_EQ(results(), straight) << "steps and validations, each once";
  EXPECT_THAT(steps_in(checkpoints()), ElementsAre(2, 3, 4, 6));
  const std::string before = metrics();
  EXPECT_EQ(train(config_, {}).iterations, 0) << "there is nothing left to train";
  EXPECT_EQ(metrics(), before);
}

// Validations of the schedule read the samples that they would have read in one run.
TEST_F(Resume, ValidatesOnTheSamplesOfOneRun) {
  testing::write_data_set("D1", directory_ / "D1");
  config_.data.valid.prefixes = {directory_ / "D1"};
  config_.run.eval_interval = 2;
  train_to(6);
  const auto straight = results();
  use_folder("stopped");
  train_to(3);
  ASSERT_EQ(results().back()["iteration"], 3) << "a validation that the schedule does not have";
  train_to(6);
  auto lines = results();
  lines.erase(lines.begin() + 4);
  EXPECT_EQ(lines, straight);
  EXPECT_NE(straight[2]["validation_loss"], straight[5]["validation_loss"]);
}

// What was written after the last save, by a run that was killed, is not in the way.
TEST_F(Resume, ForgetsStepsThatNoCheckpointHolds) {
  train_to(6);
  const auto straight = results();
  fs::remove_all(checkpoints() / "step-00000006");
  fs::remove(checkpoints() / "latest");
  testing::write_text(config_.run.directory + "/metrics.jsonl", metrics() + "{\"iteration\":");
  train_to(6);
  EXPECT_EQ(results(), straight);
}

TEST_F(Resume, BeginsAnewWithoutCheckpoints) {
  config_.checkpoint.save_directory.clear();
  train_to(3);
  EXPECT_FALSE(fs::exists(config_.run.directory + "/checkpoints"));
  train_to(3);
  EXPECT_EQ(results().size(), 4U);
}

TEST_F(Resume, SaysWhatIsOtherThanBefore) {
  train_to(2);
  EXPECT_EQ(find_start(config_, {}).notice, "");
  const std::string yaml = config_.resolved_yaml;
  const auto with = [&](const std::string& line, const std::string& by) {
    config_.resolved_yaml = yaml;
    const size_t at = yaml.find(line);
    EXPECT_NE(at, std::string::npos) << yaml;
    config_.resolved_yaml.replace(at, line.size(), by);
    return find_start(config_, {}).notice;
  };
  EXPECT_THAT(with(" lr: 0.003", " lr: 0.001"),
              HasSubstr("step-00000002 was saved with other values: lr=0.001 (was 0.003)"));
  EXPECT_EQ(with("exp_name: \"m0\"", "exp_name: \"m1\""), "") << "a run may have another name";
}

TEST_F(Resume, RefusesDamageAndLeavesTheFolderAsItIs) {
  train_to(4);
  const std::string before = metrics();
  const std::string file = checkpoints() / "step-00000004" / "rank-00001.safetensors";
  std::string bytes = testing::read_text(file);
  bytes[bytes.size() - 3] ^= 1;
  testing::write_text(file, bytes);
  EXPECT_THAT(refusal(), HasSubstr(file + ": damaged"));
  EXPECT_EQ(metrics(), before);
  fs::remove_all(checkpoints() / "step-00000004");
  EXPECT_THAT(refusal(), HasSubstr("latest: it says \"step-00000004\""));
  EXPECT_EQ(metrics(), before);
}

TEST_F(Resume, TakesACheckpointByItsPath) {
  train_to(6);
  const auto straight = results();
  const fs::path from = checkpoints() / "step-00000004";
  use_folder("elsewhere");
  train_to(6, {.resume = sevenfold::Resume::kPath, .resume_path = from});
  EXPECT_THAT(steps_in(checkpoints()), ElementsAre(6));
  const auto lines = results();
  ASSERT_EQ(lines.size(), 3U);  // steps 5 and 6, validation
  EXPECT_EQ(lines[0], straight[5]);
  EXPECT_EQ(lines[1], straight[6]);
  EXPECT_EQ(lines[2], straight[7]);
  use_folder("run");
  for (const std::string& path : {from.string(), from.string() + "/"})
    EXPECT_THAT(refusal({.resume = sevenfold::Resume::kPath, .resume_path = path}),
                HasSubstr("holds newer checkpoints, up to step-00000006"));
  use_folder("elsewhere");
  EXPECT_THAT(refusal({.resume = sevenfold::Resume::kPath, .resume_path = from}),
              HasSubstr("step-00000004: it is of step 4, and " + checkpoints().string() +
                        " holds newer checkpoints, up to step-00000006"));
  use_folder("run");
  EXPECT_THAT(refusal({.resume = sevenfold::Resume::kPath, .resume_path = directory_ / "none"}),
              HasSubstr("there is no such folder; there are 3 checkpoints, step-00000002 to"));
}

TEST_F(Resume, LoadsTheWeightsOfAnotherRun) {
  train_to(4);
  const auto other = results();
  config_.checkpoint.load = checkpoints();
  config_.checkpoint.load_where = "run.yaml:7 load=" + config_.checkpoint.load;
  config_.checkpoint.loads_weights_only = true;
  use_folder("finetuned");
  train_to(1);
  auto lines = results();
  ASSERT_EQ(lines.size(), 2U);  // a step and the validation at its end
  EXPECT_EQ(lines[0]["iteration"], 1);
  EXPECT_LT(lines[0]["loss"].get<double>(), other[0]["loss"].get<double>() - 0.01);
  config_.checkpoint.load_step = 3;
  use_folder("third");
  EXPECT_THAT(refusal(), HasSubstr("run.yaml:7 load="));
  EXPECT_THAT(refusal(), HasSubstr("no step-00000003 is there"));
  EXPECT_FALSE(fs::exists(config_.run.directory)) << "nothing is half-written";
  config_.checkpoint.load_is_required = false;
  train_to(1);
  EXPECT_EQ(results()[0]["loss"], other[0]["loss"]) << "start weights";
}

TEST_F(Resume, GoesOnElsewhereFromALoadedRun) {
  train_to(6);
  const auto straight = results();
  config_.checkpoint.load = checkpoints();
  config_.checkpoint.load_step = 4;
  use_folder("continued");
  train_to(6);
  ASSERT_EQ(results().size(), 3U);
  EXPECT_EQ(results()[1], straight[6]);
}

TEST_F(Resume, RefusesWhatDoesNotFitTheModel) {
  train_to(2);
  const std::string folder = checkpoints() / "step-00000002";
  config_.model.vocab_size = 103;
  EXPECT_THAT(refusal(), HasSubstr(folder + ": model.embed_tokens.weight has shape [101, 32] there "
                                            "and [103, 32] in the model"));
  config_.model.vocab_size = 101;
  config_.model.num_layers = 3;
  config_.pipeline.stages[0].num_layers = 3;
  EXPECT_THAT(refusal(), HasSubstr("it has model.layers.3."));
  config_.model.num_layers = 4;
  config_.pipeline.stages[0].num_layers = 4;
  config_.optimizer.kind = OptimizerKind::kSgd;
  EXPECT_THAT(refusal(), HasSubstr("it holds states of adamw, and the run steps with sgd"));
  config_.checkpoint.load = folder;
  config_.checkpoint.loads_optimizer = false;
  EXPECT_THAT(refusal(), HasSubstr("in another folder (--out DIR load=" + folder))
      << "a run's own folder goes before load";
  use_folder("another");
  EXPECT_EQ(refusal(), "trained");
  EXPECT_EQ(results()[0]["iteration"], 3);
}

TEST_F(Resume, NeedsOptimizerStates) {
  config_.checkpoint.saves_optimizer = false;
  train_to(2);
  EXPECT_THAT(refusal(), HasSubstr("it holds weights only"));
}

TEST_F(Resume, KeepsAsManyCheckpointsAsAsked) {
  config_.checkpoint.interval = 1;
  config_.checkpoint.keep_latest = 2;
  config_.checkpoint.retain_interval = 3;
  train_to(6);
  EXPECT_THAT(steps_in(checkpoints()), ElementsAre(3, 5, 6));
  config_.checkpoint.saves_last = false;
  config_.checkpoint.interval = 4;
  use_folder("interval");
  train_to(6);
  EXPECT_THAT(steps_in(checkpoints()), ElementsAre(4));
}

}  // namespace
}  // namespace sevenfold

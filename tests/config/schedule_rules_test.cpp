// Lengths, global batches that change, learning rates and weight decay, against the older
// Megatron's arithmetic and the recorded batches of reference runs.

#include <gmock/gmock.h>

#include "config/experiment_files.h"
#include "sevenfold/config/batch_schedule.h"

namespace sevenfold {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Config load(std::vector<std::string> words) {
  return load_text(small_llama(), std::move(words));
}

// Global batches of the first steps, read off the stages.
std::vector<int64_t> batches(const BatchConfig& batch, int num_steps) {
  std::vector<int64_t> sizes;
  int64_t consumed = 0;
  for (int step = 0; step < num_steps; ++step) {
    int64_t size = batch.global_batch_size;
    for (const BatchStage& stage : batch.schedule)
      if (stage.from_samples <= consumed) size = stage.global_batch_size;
    sizes.push_back(size);
    consumed += size;
  }
  return sizes;
}

// The older calculator, written anew from its definition: one division for every step.
std::vector<int64_t> grown(int64_t start, int64_t increment, int64_t samples, int64_t full,
                           int num_steps) {
  std::vector<int64_t> sizes;
  int64_t consumed = 0;
  for (int step = 0; step < num_steps; ++step) {
    const double width =
        static_cast<double>(samples) / static_cast<double>((full - start) / increment);
    const auto steps = static_cast<int64_t>(static_cast<double>(consumed) / width);
    sizes.push_back(consumed > samples ? full : start + increment * steps);
    consumed += sizes.back();
  }
  return sizes;
}

TEST(BatchSchedule, GrowsAsTheOlderCalculatorDoes) {
  const Config config = load({"rampup_batch_size=[8, 8, 96]", "global_batch_size=32",
                              "micro_batch_size=2", "sevenfold.ranks=2"});
  EXPECT_EQ(batches(config.batch, 12),
            (std::vector<int64_t>{8, 8, 8, 8, 16, 16, 24, 24, 32, 32, 32, 32}));
  EXPECT_EQ(config.batch.schedule.front().from_samples, 0);
  EXPECT_EQ(config.batch.global_batch_size, 32);
  EXPECT_EQ(config.batch.num_microbatches, 8);
  EXPECT_THAT(config.notices, Contains(Field(&Notice::text, HasSubstr("Megatron 0.20 ignores"))));
}

TEST(BatchSchedule, EqualsTheOlderCalculatorForManyNumbers) {
  int num_compared = 0;
  for (const int64_t start : {1, 5})
    for (const int64_t increment : {1, 7})
      for (const int64_t steps : {1, 6, 11})
        for (const int64_t samples : {1, 97, 12345}) {
          const int64_t full = start + increment * steps;
          const Config config =
              load({"global_batch_size=" + std::to_string(full), "lr_decay_style=constant",
                    "rampup_batch_size=" + std::to_string(start) + " " + std::to_string(increment) +
                        " " + std::to_string(samples)});
          EXPECT_EQ(batches(config.batch, 300), grown(start, increment, samples, full, 300))
              << start << " " << increment << " " << samples << " " << full;
          ++num_compared;
        }
  EXPECT_EQ(num_compared, 36);
}

TEST(BatchSchedule, StepsAtNumbersOfTokens) {
  const Config config = load(
      {"step_batch_size_schedule=0:8 2K:16 5K:32", "sevenfold.ranks=4", "global_batch_size=32"});
  EXPECT_EQ(batches(config.batch, 14),
            (std::vector<int64_t>{8, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16}));
  ASSERT_EQ(config.batch.schedule.size(), 3u);
  EXPECT_EQ(config.batch.schedule[1].from_samples, 2000 / 32);
  EXPECT_EQ(config.batch.schedule[2].from_samples, 5000 / 32);
  EXPECT_EQ(config.batch.global_batch_size, 32);
  const Config large = load({"step_batch_size_schedule=0:768 250B:1536"});
  EXPECT_EQ(large.batch.schedule[1].from_samples, 250'000'000'000 / 32);
  EXPECT_EQ(large.batch.global_batch_size, 1536);
  EXPECT_THAT(large.notices,
              Contains(Field(&Notice::text, HasSubstr("global_batch_size=8 gives "
                                                      "way to its last batch 1536"))));
}

TEST(BatchSchedule, ChecksEveryBatch) {
  EXPECT_THAT(rule_of(small_llama(), {"rampup_batch_size=[3, 1, 9]", "micro_batch_size=2"}),
              StartsWith("batch.schedule config: override rampup_batch_size=[3,1,9]: its global "
                         "batch 3 is not micro_batch_size x data-parallel size = 2"));
  EXPECT_EQ(
      rule_of(small_llama(), {"rampup_batch_size=[64, 8, 9]"}),
      "batch.rampup config: override rampup_batch_size=[64,8,9]: its first global batch 64 is "
      "above global_batch_size=8, and the batch only grows; start with at most that, or use a "
      "larger global_batch_size");
  EXPECT_THAT(rule_of(small_llama(), {"rampup_batch_size=[2, 4, 9]"}),
              StartsWith("batch.rampup config: override rampup_batch_size=[2,4,9]: from 2 in steps "
                         "of 4 the batch never is global_batch_size=8"));
  for (const char* text : {"[2, 2]", "[0, 2, 8]", "[16, 2, 8]", "a b c", "[2, 2, -1]"})
    EXPECT_THAT(rule_of(small_llama(), {std::string("rampup_batch_size=") + text}),
                StartsWith("batch.rampup "))
        << text;
  for (const char* text : {"0:8 8", "4:8", "0:8 31:16", "0:8 1K:16 500:8", "0:8 x:9", "0:8 -5:9"})
    EXPECT_THAT(rule_of(small_llama(), {std::string("step_batch_size_schedule=") + text}),
                StartsWith("batch.steps "))
        << text;
  EXPECT_THAT(rule_of(small_llama(), {"step_batch_size_schedule=0:3", "micro_batch_size=2"}),
              StartsWith("batch.schedule "));
  EXPECT_THAT(
      rule_of(small_llama(), {"step_batch_size_schedule=0:8 1K:16", "rampup_batch_size=[2, 2, 8]"}),
      StartsWith("batch.one_schedule "));
}

TEST(RunSamples, AreThoseAskedForOrTheIterationsWorth) {
  const BatchConfig batch{.global_batch_size = 16, .schedule = {{0, 4}, {10, 8}, {40, 16}}};
  RunConfig run;
  run.train_iters = 5;
  EXPECT_EQ(run_samples(run, batch), 80);
  run.train_samples = 33;
  EXPECT_EQ(run_samples(run, batch), 33);
}

// Against a run that is walked step by step.
TEST(StepsOfARun, CountItsSamplesAndBack) {
  for (const BatchConfig& batch :
       {BatchConfig{.global_batch_size = 8},
        BatchConfig{.global_batch_size = 16, .schedule = {{0, 4}, {10, 8}, {40, 16}}},
        BatchConfig{.global_batch_size = 2, .schedule = {{0, 6}, {4, 9}, {5, 2}}}}) {
    int64_t consumed = 0;
    for (int64_t steps = 0; steps < 20; ++steps) {
      EXPECT_EQ(samples_of_steps(batch, steps), consumed) << steps;
      const int64_t next = consumed + global_batch_size(batch, consumed);
      for (int64_t samples = consumed; samples < next; ++samples)
        EXPECT_EQ(whole_steps(batch, samples), steps) << samples;
      consumed = next;
    }
  }
}

TEST(RunLength, IsCountedInSteps) {
  const Config config = load({"train_iters=20", "global_batch_size=16"});
  EXPECT_EQ(config.run.train_iters, 20);
  EXPECT_EQ(config.run.train_samples, 0);
  EXPECT_EQ(config.learning_rate.decay_samples, 320);
}

TEST(RunLength, IsCountedInSamples) {
  const Config config = load(
      {"train_iters=null", "train_samples=1003", "lr_warmup_samples=30", "lr_decay_style=cosine"});
  EXPECT_EQ(config.run.train_samples, 1003);
  EXPECT_EQ(config.run.train_iters, 125) << "whole steps of 8";
  EXPECT_EQ(config.learning_rate.decay_samples, 1003);
  EXPECT_EQ(config.learning_rate.warmup_samples, 30);
  EXPECT_EQ(load({"train_iters=null", "train_samples=1000", "lr_decay_samples=500"})
                .learning_rate.decay_samples,
            500);
}

TEST(RunLength, CountsTheStepsOfAChangingBatch) {
  const Config config = load({"train_iters=null", "train_samples=200", "global_batch_size=32",
                              "rampup_batch_size=[8, 8, 96]"});
  EXPECT_EQ(config.run.train_iters, 10) << "8 8 8 8 16 16 24 24 are 112 samples, then 2 x 32";
}

TEST(RunLength, TakesOneCounting) {
  EXPECT_THAT(
      rule_of(small_llama(), {"train_samples=100"}),
      StartsWith("run.length config: override train_samples=100: run.yaml:23 train_iters=4 is "
                 "set too"));
  EXPECT_THAT(rule_of(small_llama(), {"lr_decay_samples=10"}),
              StartsWith("lr.counting config: override lr_decay_samples=10: the run is counted in "
                         "steps (train_iters); use lr_decay_samples=null and lr_decay_iters"));
  EXPECT_THAT(rule_of(small_llama(), {"lr_warmup_samples=10"}), StartsWith("lr.counting "));
  EXPECT_THAT(rule_of(small_llama(), {"train_iters=null", "train_samples=100", "lr_decay_iters=3"}),
              StartsWith("lr.counting "));
}

TEST(LearningRate, ReadsEveryStyle) {
  const std::pair<const char*, DecayStyle> styles[] = {
      {"constant", DecayStyle::kConstant},
      {"linear", DecayStyle::kLinear},
      {"cosine", DecayStyle::kCosine},
      {"inverse-square-root", DecayStyle::kInverseSquareRoot}};
  for (const auto& [name, style] : styles)
    EXPECT_EQ(load({std::string("lr_decay_style=") + name}).learning_rate.style, style);
}

TEST(LearningRate, WarmsUpFromAtMostItself) {
  EXPECT_THAT(
      rule_of(small_llama(), {"lr_warmup_init=0.2"}),
      StartsWith("lr.warmup_init config: override lr_warmup_init=0.2 is above lr=0.1; use a "
                 "lr_warmup_init of at most that"));
  EXPECT_EQ(load({"lr_warmup_init=0.1"}).learning_rate.warmup_init, 0.1);
}

TEST(LearningRate, SaysThatKeysOfTheLastDecayDoNothingElsewhere) {
  for (const char* word : {"lr_wsd_decay_iters=2", "lr_wsd_decay_style=linear"}) {
    const auto notice = Field(&Notice::text, std::string("override ") + word +
                                                 ": does nothing with lr_decay_style=cosine; it "
                                                 "belongs to WSD");
    EXPECT_THAT(load({word, "lr_decay_style=cosine"}).notices, Contains(notice).Times(1));
  }
  const auto any = Field(&Notice::text, HasSubstr("lr_wsd_decay"));
  EXPECT_THAT(load({"lr_decay_style=cosine"}).notices, Contains(any).Times(0));
  EXPECT_THAT(load({"lr_decay_style=WSD", "lr_wsd_decay_iters=2"}).notices, Contains(any).Times(0));
}

TEST(WeightDecay, SaysThatTheConstantOneDoesNothingWhereItGrows) {
  const std::vector<std::string> growing = {"weight_decay_incr_style=linear",
                                            "start_weight_decay=0.1", "end_weight_decay=0.3"};
  auto both = growing;
  both.push_back("weight_decay=0.2");
  EXPECT_THAT(load(both).notices,
              Contains(Field(&Notice::text,
                             "override weight_decay=0.2: does nothing with "
                             "weight_decay_incr_style=linear; start_weight_decay "
                             "and end_weight_decay act"))
                  .Times(1));
  EXPECT_THAT(load(growing).notices,
              Contains(Field(&Notice::text, HasSubstr(" weight_decay="))).Times(0));
}

TEST(LearningRate, ReadsTheLastDecayOfWsd) {
  const LearningRateConfig rate =
      load({"lr_decay_style=WSD", "lr_wsd_decay_iters=2"}).learning_rate;
  EXPECT_EQ(rate.style, DecayStyle::kWsd);
  EXPECT_EQ(rate.wsd_style, WsdDecayStyle::kExponential);
  EXPECT_EQ(rate.wsd_decay_samples, 16);
  const std::pair<const char*, WsdDecayStyle> styles[] = {
      {"linear", WsdDecayStyle::kLinear},
      {"cosine", WsdDecayStyle::kCosine},
      {"minus_sqrt", WsdDecayStyle::kMinusSqrt}};
  for (const auto& [name, style] : styles)
    EXPECT_EQ(load({"lr_decay_style=WSD", "train_iters=null", "train_samples=64",
                    "lr_wsd_decay_samples=10", std::string("lr_wsd_decay_style=") + name})
                  .learning_rate.wsd_style,
              style);
  EXPECT_THAT(rule_of(small_llama(), {"lr_decay_style=WSD"}),
              StartsWith("lr.wsd config: override lr_decay_style=WSD: the length of the last decay "
                         "is missing; set lr_wsd_decay_iters"));
  EXPECT_THAT(rule_of(small_llama(), {"lr_decay_style=WSD", "lr_wsd_decay_iters=5"}),
              StartsWith("lr.wsd "));
  EXPECT_THAT(rule_of(small_llama(),
                      {"lr_decay_style=WSD", "lr_wsd_decay_iters=1", "lr_wsd_decay_style=step"}),
              StartsWith("lr.style "));
}

TEST(WeightDecay, StaysOrGrows) {
  const OptimizerConfig constant = load({"weight_decay=0.1"}).optimizer;
  EXPECT_EQ(constant.weight_decay, 0.1);
  EXPECT_EQ(constant.end_weight_decay, 0.1);
  EXPECT_EQ(constant.weight_decay_style, WeightDecayStyle::kConstant);
  const OptimizerConfig growing = load({"weight_decay_incr_style=linear", "start_weight_decay=0.1",
                                        "end_weight_decay=0.3", "lr_decay_iters=2"})
                                      .optimizer;
  EXPECT_EQ(growing.weight_decay, 0.1);
  EXPECT_EQ(growing.end_weight_decay, 0.3);
  EXPECT_EQ(growing.weight_decay_style, WeightDecayStyle::kLinear);
  EXPECT_TRUE(load({"apply_wd_to_qk_layernorm=true"}).optimizer.decay_qk_norm);
}

TEST(WeightDecay, TakesStartAndEndOrNeither) {
  EXPECT_THAT(rule_of(small_llama(), {"start_weight_decay=0.1"}),
              StartsWith("optimizer.weight_decay config: override start_weight_decay=0.1: "
                         "weight_decay_incr_style=constant takes weight_decay alone; use "
                         "start_weight_decay=null"));
  EXPECT_THAT(
      rule_of(small_llama(), {"weight_decay_incr_style=cosine", "start_weight_decay=0.1"}),
      HasSubstr("end_weight_decay=null: weight_decay_incr_style=cosine needs a start and an "
                "end"));
  EXPECT_THAT(rule_of(small_llama(), {"weight_decay_incr_style=cosine", "start_weight_decay=0.2",
                                      "end_weight_decay=0.1"}),
              HasSubstr("is below start_weight_decay=0.2"));
  EXPECT_THAT(rule_of(small_llama(), {"weight_decay_incr_style=fast"}),
              StartsWith("optimizer.weight_decay "));
}

TEST(RunKeys, ReachTheRun) {
  const RunConfig run =
      load({"skip_train=true", "exit_interval=7", "exit_duration_in_mins=90", "loss_scale=128",
            "initial_loss_scale=65536", "min_loss_scale=2", "loss_scale_window=50", "hysteresis=3",
            "log_throughput=false", "log_params_norm=true", "log_num_zeros_in_grad=true",
            "disable_tensorboard=false", "tensorboard_log_interval=5"})
          .run;
  EXPECT_TRUE(run.skip_train);
  EXPECT_EQ(run.exit_interval, 7);
  EXPECT_EQ(run.exit_duration_minutes, 90);
  EXPECT_EQ(run.loss_scale.constant, 128.0);
  EXPECT_EQ(run.loss_scale.initial, 65536.0);
  EXPECT_EQ(run.loss_scale.smallest, 2.0);
  EXPECT_EQ(run.loss_scale.window, 50);
  EXPECT_EQ(run.loss_scale.hysteresis, 3);
  EXPECT_FALSE(run.log_throughput);
  EXPECT_TRUE(run.log_params_norm && run.log_num_zeros);
  EXPECT_EQ(run.tensorboard_directory, "out/team/me/small/tensorboard");
  EXPECT_EQ(run.tensorboard_log_interval, 5);
}

TEST(RunKeys, HaveMegatronsDefaults) {
  const RunConfig run = load({}).run;
  EXPECT_FALSE(run.skip_train);
  EXPECT_EQ(run.exit_interval, 0);
  EXPECT_EQ(run.exit_duration_minutes, 0);
  EXPECT_EQ(run.loss_scale.constant, 0.0);
  EXPECT_EQ(run.loss_scale.initial, 4294967296.0);
  EXPECT_EQ(run.loss_scale.hysteresis, 2);
  EXPECT_EQ(run.tensorboard_directory, "");
  EXPECT_EQ(load({"profile=true"}).run.tensorboard_directory, "out/team/me/small/tensorboard");
  const Config named = load({"disable_tensorboard=false", "tensorboard_dir=elsewhere"});
  EXPECT_THAT(named.notices, Contains(Field(&Notice::text, HasSubstr("files for TensorBoard go to "
                                                                     "out/team/me/small"))));
  EXPECT_THAT(rule_of(small_llama(), {"min_loss_scale=1e20"}), StartsWith("precision.loss_scale "));
}

}  // namespace
}  // namespace sevenfold

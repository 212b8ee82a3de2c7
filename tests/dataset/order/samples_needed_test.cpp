#include "sevenfold/dataset/order/samples_needed.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"

namespace sevenfold {
namespace {

RunLength length_of(const nlohmann::json& arguments) {
  RunLength run;
  run.train_iters = arguments["train_iters"];
  run.train_samples = arguments.value("train_samples", int64_t{0});
  run.global_batch_size = arguments["global_batch_size"];
  run.eval_interval = arguments["eval_interval"];
  run.eval_iters = arguments["eval_iters"];
  run.eval_global_batch_size = arguments.value("eval_global_batch_size", int64_t{0});
  run.start_eval_at_iter = arguments.value("start_eval_at_iter", int64_t{0});
  run.full_validation = arguments.value("full_validation", false);
  return run;
}

TEST(SamplesNeeded, AreMegatrons) {
  for (const auto& entry : testing::megatron_golden()["num_samples"]) {
    SCOPED_TRACE(entry["args"].dump());
    const RunLength run = length_of(entry["args"]);
    const auto& expected = entry["train_valid_test"];
    EXPECT_EQ(train_samples_needed(run), expected[0].get<int64_t>());
    const auto valid = valid_samples_needed(run);
    ASSERT_EQ(valid.has_value(), !expected[1].is_null());
    if (valid) {
      EXPECT_EQ(*valid, expected[1].get<int64_t>());
    }
    EXPECT_EQ(test_samples_needed(run), expected[2].get<int64_t>());
  }
  EXPECT_EQ(testing::megatron_golden()["num_samples"].size(), 7U);
}

TEST(SamplesNeeded, AreNoneWithoutAnInterval) {
  EXPECT_EQ(valid_samples_needed({.train_iters = 10, .global_batch_size = 4, .eval_iters = 2}), 0);
}

TEST(SamplesNeeded, AreOneEvaluationWithoutTraining) {
  const RunLength run = {.train_iters = 500,
                         .global_batch_size = 16,
                         .eval_interval = 100,
                         .eval_iters = 10,
                         .skip_train = true};
  EXPECT_EQ(valid_samples_needed(run), 160);
  EXPECT_EQ(valid_samples_consumed(run, 300), 0);
}

TEST(SamplesNeeded, AreNoneWhenEvaluationsStartAfterTheEnd) {
  EXPECT_EQ(valid_samples_needed({.train_iters = 100,
                                  .global_batch_size = 4,
                                  .eval_interval = 10,
                                  .eval_iters = 2,
                                  .start_eval_at_iter = 500}),
            0);
}

// max(0, iteration // interval - start // interval) * eval_iters * eval batch.
TEST(SamplesNeeded, ResumedValidationGoesOnWhereTheLastEvaluationStopped) {
  RunLength run = {
      .train_iters = 500, .global_batch_size = 16, .eval_interval = 100, .eval_iters = 10};
  EXPECT_EQ(valid_samples_consumed(run, 0), 0);
  EXPECT_EQ(valid_samples_consumed(run, 99), 0);
  EXPECT_EQ(valid_samples_consumed(run, 250), 320);
  run.start_eval_at_iter = 150;
  run.eval_global_batch_size = 8;
  EXPECT_EQ(valid_samples_consumed(run, 250), 80);
  EXPECT_EQ(valid_samples_consumed(run, 50), 0);
}

}  // namespace
}  // namespace sevenfold

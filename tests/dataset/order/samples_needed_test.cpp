#include "sevenfold/dataset/order/samples_needed.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"
#include "sevenfold/config/batch_schedule.h"

namespace sevenfold {
namespace {

// Megatron's arguments; those of evaluations that start later or have a batch of their own are no
// keys of an experiment.
bool is_of_an_experiment(const nlohmann::json& arguments) {
  return !arguments.contains("start_eval_at_iter") && !arguments.contains("eval_global_batch_size");
}

TEST(SamplesNeeded, AreMegatrons) {
  int num_compared = 0;
  for (const auto& entry : testing::megatron_golden()["num_samples"]) {
    const auto& arguments = entry["args"];
    if (!is_of_an_experiment(arguments)) continue;
    SCOPED_TRACE(arguments.dump());
    ++num_compared;
    RunConfig run;
    run.train_iters = arguments["train_iters"];
    run.train_samples = arguments.value("train_samples", int64_t{0});
    run.eval_interval = arguments["eval_interval"];
    run.eval_iters = arguments["eval_iters"];
    run.full_validation = arguments.value("full_validation", false);
    const BatchConfig batch{.global_batch_size = arguments["global_batch_size"]};
    const auto& expected = entry["train_valid_test"];
    EXPECT_EQ(run_samples(run, batch), expected[0].get<int64_t>());
    const auto valid = valid_samples_needed(run, batch);
    ASSERT_EQ(valid.has_value(), !expected[1].is_null());
    if (valid) {
      EXPECT_EQ(*valid, expected[1].get<int64_t>());
    }
    EXPECT_EQ(test_samples_needed(run, batch), expected[2].get<int64_t>());
  }
  EXPECT_EQ(num_compared, 5);
}

TEST(SamplesNeeded, AreNoneWithoutAnInterval) {
  RunConfig run;
  run.train_iters = 10;
  run.eval_iters = 2;
  EXPECT_EQ(valid_samples_needed(run, {.global_batch_size = 4}), 0);
}

TEST(SamplesNeeded, AreOneEvaluationWithoutTraining) {
  RunConfig run;
  run.train_iters = 500;
  run.eval_interval = 100;
  run.eval_iters = 10;
  run.skip_train = true;
  EXPECT_EQ(valid_samples_needed(run, {.global_batch_size = 16}), 160);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/dataset/order/samples_needed.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"

namespace sevenfold {
namespace {

TEST(SamplesNeeded, AreMegatronsForTrainingAndValidation) {
  for (const auto& entry : testing::megatron_golden()["num_samples"]) {
    const auto& arguments = entry["args"];
    // A count of samples instead of steps, and full validation, have keys of their own.
    if (arguments.contains("train_samples") || arguments.contains("full_validation")) continue;
    SCOPED_TRACE(arguments.dump());
    RunLength run;
    run.train_iters = arguments["train_iters"];
    run.global_batch_size = arguments["global_batch_size"];
    run.eval_interval = arguments["eval_interval"];
    run.eval_iters = arguments["eval_iters"];
    run.eval_global_batch_size = arguments.value("eval_global_batch_size", int64_t{0});
    run.start_eval_at_iter = arguments.value("start_eval_at_iter", int64_t{0});
    EXPECT_EQ(train_samples_needed(run), entry["train_valid_test"][0].get<int64_t>());
    EXPECT_EQ(valid_samples_needed(run), entry["train_valid_test"][1].get<int64_t>());
  }
}

TEST(SamplesNeeded, AreNoneWithoutAnInterval) {
  EXPECT_EQ(valid_samples_needed({.train_iters = 10, .global_batch_size = 4, .eval_iters = 2}), 0);
}

}  // namespace
}  // namespace sevenfold

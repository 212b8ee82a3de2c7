#include "sevenfold/dataset/order/samples_needed.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"

namespace sevenfold {
namespace {

TEST(SamplesNeeded, AreMegatronsForTrainingAndValidation) {
  int64_t num_checked = 0;
  for (const auto& entry : testing::megatron_golden()["num_samples"]) {
    const auto& arguments = entry["args"];
    // Full validation has a request of its own; the others are of keys that no run here has.
    const auto is_named = [&](const char* name) { return arguments.contains(name); };
    if (is_named("train_samples") || is_named("full_validation") ||
        is_named("eval_global_batch_size") || is_named("start_eval_at_iter"))
      continue;
    ++num_checked;
    SCOPED_TRACE(arguments.dump());
    RunLength run;
    run.train_iters = arguments["train_iters"];
    run.global_batch_size = arguments["global_batch_size"];
    run.eval_interval = arguments["eval_interval"];
    run.eval_iters = arguments["eval_iters"];
    EXPECT_EQ(train_samples_needed(run), entry["train_valid_test"][0].get<int64_t>());
    EXPECT_EQ(valid_samples_needed(run), entry["train_valid_test"][1].get<int64_t>());
  }
  EXPECT_GE(num_checked, 1);
}

TEST(SamplesNeeded, AreNoneWithoutAnInterval) {
  EXPECT_EQ(valid_samples_needed({.train_iters = 10, .global_batch_size = 4, .eval_iters = 2}), 0);
}

}  // namespace
}  // namespace sevenfold

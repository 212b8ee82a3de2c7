#include "sevenfold/train/stop_rule.h"

#include <gtest/gtest.h>

namespace sevenfold {
namespace {

RunConfig long_run() {
  RunConfig run;
  run.train_iters = 2'000'000;
  return run;
}

TEST(StopAfter, GoesOnWithoutAReason) {
  EXPECT_EQ(stop_after(long_run(), 1'000'000, 1e9, false), StopReason::kNone);
}

TEST(StopAfter, TheLastStepIsNoStop) {
  RunConfig run;
  run.train_iters = 6;
  run.exit_interval = 3;
  EXPECT_EQ(stop_after(run, 3, 0.0, true), StopReason::kSignal);
  EXPECT_EQ(stop_after(run, 6, 0.0, true), StopReason::kNone);
}

TEST(StopAfter, StopsAtMultiplesOfExitInterval) {
  RunConfig run = long_run();
  run.exit_interval = 3;
  EXPECT_EQ(stop_after(run, 2, 0.0, false), StopReason::kNone);
  EXPECT_EQ(stop_after(run, 3, 0.0, false), StopReason::kExitInterval);
  EXPECT_EQ(stop_after(run, 9, 0.0, false), StopReason::kExitInterval);
  EXPECT_EQ(describe_stop(StopReason::kExitInterval, 3, run),
            "stopped after iteration 3: exit_interval=3");
}

TEST(StopAfter, StopsWhenTheMinutesAreUp) {
  RunConfig run = long_run();
  run.exit_duration_minutes = 2;
  EXPECT_EQ(stop_after(run, 1, 119.9, false), StopReason::kNone);
  EXPECT_EQ(stop_after(run, 1, 120.0, false), StopReason::kExitDuration);
  EXPECT_EQ(describe_stop(StopReason::kExitDuration, 1, run),
            "stopped after iteration 1: exit_duration_in_mins=2");
}

TEST(StopAfter, NamesTheSignalFirst) {
  RunConfig run = long_run();
  run.exit_interval = 1;
  EXPECT_EQ(stop_after(run, 1, 0.0, true), StopReason::kSignal);
}

}  // namespace
}  // namespace sevenfold

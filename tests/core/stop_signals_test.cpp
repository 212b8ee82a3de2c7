#include "sevenfold/core/stop_signals.h"

#include <gtest/gtest.h>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

TEST(StopSignals, AskForAStopInsteadOfEndingTheProcess) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const StopSignals signals;
    EXPECT_FALSE(signals.stop_requested());
    std::raise(signal);
    EXPECT_TRUE(signals.stop_requested());
  }
}

TEST(StopSignals, RestoreTheHandlersFromBefore) {
  const auto ignore_before = std::signal(SIGTERM, SIG_IGN);
  { const StopSignals signals; }
  EXPECT_EQ(std::signal(SIGTERM, ignore_before), SIG_IGN);
}

TEST(StopSignals, ExistOnce) {
  const StopSignals signals;
  EXPECT_THROW(StopSignals(), InternalError);
}

void raise_twice(int signal) {
  const StopSignals signals;
  std::raise(signal);
  std::raise(signal);
}

TEST(StopSignalsDeathTest, ASecondSignalLeavesAtOnce) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(raise_twice(SIGINT), testing::ExitedWithCode(130),
              "interrupt again to leave at once");
  EXPECT_EXIT(raise_twice(SIGTERM), testing::ExitedWithCode(143), "");
}

}  // namespace
}  // namespace sevenfold

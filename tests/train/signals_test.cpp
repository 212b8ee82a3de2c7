#include "sevenfold/train/signals.h"

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

TEST(StopSignalsDeathTest, ASecondInterruptLeavesAtOnce) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const StopSignals signals;
        std::raise(SIGTERM);
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::ExitedWithCode(130), "interrupt again to leave at once");
}

}  // namespace
}  // namespace sevenfold

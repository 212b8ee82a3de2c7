#include "sevenfold/dist/ledger.h"

#include <gtest/gtest.h>

namespace sevenfold {
namespace {

using enum MemoryCategory;

TEST(MemoryLedger, KeepsLiveAndPeakByCategory) {
  MemoryLedger ledger;
  ledger.add(kParameters, 100);
  ledger.add(kActivations, 50);
  ledger.remove(kActivations, 50);
  ledger.add(kGradients, 30);
  EXPECT_EQ(ledger.live(kParameters), 100);
  EXPECT_EQ(ledger.live(kActivations), 0);
  EXPECT_EQ(ledger.live_total(), 130);
  EXPECT_EQ(ledger.peak(kActivations), 50);
  EXPECT_EQ(ledger.peak_total(), 150);
  EXPECT_EQ(ledger.at_peak(), (std::array<int64_t, 5>{100, 0, 0, 50, 0}));
}

TEST(MemoryLedger, RestartsPeaksFromWhatIsLive) {
  MemoryLedger ledger;
  ledger.add(kOptimizer, 100);
  ledger.remove(kOptimizer, 60);
  ledger.reset_peaks();
  EXPECT_EQ(ledger.peak(kOptimizer), 40);
  EXPECT_EQ(ledger.peak_total(), 40);
  EXPECT_EQ(ledger.at_peak(), (std::array<int64_t, 5>{0, 0, 40, 0, 0}));
}

TEST(MemoryScope, NestsAndRestores) {
  MemoryLedger ledger;
  EXPECT_EQ(MemoryScope::current_counters(), nullptr);
  {
    MemoryScope rank(&ledger, kActivations);
    {
      MemoryScope parameters(kParameters);
      EXPECT_EQ(MemoryScope::current_counters(), ledger.counters());
      EXPECT_EQ(MemoryScope::current_category(), kParameters);
      MemoryScope nobody(nullptr, kGradients);
      EXPECT_EQ(MemoryScope::current_counters(), nullptr);
    }
    EXPECT_EQ(MemoryScope::current_category(), kActivations);
  }
  EXPECT_EQ(MemoryScope::current_counters(), nullptr);
}

// The moment is that of the highest sum, whatever came after.
TEST(MomentScope, NamesThePeakOfTheThreadsRank) {
  MemoryLedger ledger;
  EXPECT_STREQ(ledger.moment_at_peak().work, "start");
  const MemoryScope rank(&ledger, kActivations);
  {
    const MomentScope forward("forward", 3);
    const MomentScope layer(5);
    ledger.add(kActivations, 100);
  }
  EXPECT_STREQ(ledger.counters()->moment().work, "start");
  EXPECT_EQ(ledger.counters()->moment().layer, -1);
  {
    const MomentScope optimizer("optimizer");
    ledger.remove(kActivations, 60);
    ledger.add(kOptimizer, 60);  // as high, not higher
  }
  EXPECT_STREQ(ledger.moment_at_peak().work, "forward");
  EXPECT_EQ(ledger.moment_at_peak().microbatch, 3);
  EXPECT_EQ(ledger.moment_at_peak().layer, 5);
  const MomentScope reading("read data");
  ledger.reset_peaks();
  EXPECT_STREQ(ledger.moment_at_peak().work, "read data");
}

TEST(MomentScope, DoesNothingWhereMemoryIsNotBooked) {
  const MomentScope nobody("forward", 1);
  EXPECT_EQ(MemoryScope::current_counters(), nullptr);
}

TEST(TrafficLedger, AddsUpByGroupAndOperation) {
  TrafficLedger ledger;
  ledger.record("dp", "all_reduce", 100);
  ledger.record("dp", "all_reduce", 20);
  ledger.record("dp", "barrier", 0);
  ledger.record("tp", "all_reduce", 7);
  ledger.record_time("dp", "all_reduce", 2.0, 0.5);
  EXPECT_EQ((ledger.entries().at({"dp", "all_reduce"}).bytes_sent), 120);
  EXPECT_EQ(ledger.of_group("dp").operations, 3);
  EXPECT_EQ(ledger.total().bytes_sent, 127);
  EXPECT_EQ(ledger.total().seconds_blocked, 0.5);
  ledger.clear();
  EXPECT_EQ(ledger.total().operations, 0);
}

}  // namespace
}  // namespace sevenfold

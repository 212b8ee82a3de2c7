#include "sevenfold/dist/threads/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/threads/raw_ranks.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/aborted.h"

namespace sevenfold::threads {
namespace {

using namespace raw;

TEST(Team, RunsEveryRankOnce) {
  std::vector<std::atomic<int>> runs(6);
  Team team(6, kPatience, kPatience);
  team.run([&](int64_t rank) { ++runs[rank]; });
  for (const auto& each : runs) EXPECT_EQ(each, 1);
}

TEST(Team, ReportsTheFirstFailureAndEndsEveryWait) {
  for (int turn = 0; turn < 30; ++turn) {
    std::atomic<int> num_ended{0};
    try {
      run(6, [&](Member& member) {
        if (member.rank() == 4) throw DataError("data: the first failure");
        try {
          barrier(member);
        } catch (const Aborted& error) {
          ++num_ended;
          EXPECT_STREQ(error.what(), "dist/threads: rank 4 has failed; this rank leaves too");
          if (member.rank() == 1) throw InternalError("a consequence, not the cause");
          throw;
        }
      });
      ADD_FAILURE() << "the failure was lost";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "data: the first failure");
    }
    EXPECT_EQ(num_ended, 5);
  }
}

TEST(Team, WakesASleeperWhosePeerComesLate) {
  // Longer than the yields before a sleep, by construction: the peer waits until the other sleeps
  // or would.
  run(2, [](Member& member) {
    for (int turn = 0; turn < 100; ++turn) {
      if (member.rank() == turn % 2) {
        for (int i = 0; i < 300; ++i) std::this_thread::yield();
      }
      barrier(member);
    }
  });
}

TEST(TeamDeathTest, LeavesTheProcessWhenARankIsStuckInCompute) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto stuck_run = [] {
    Team team(2, kPatience, std::chrono::milliseconds(100));
    Group group(team, "world", {0, 1});
    team.run([&](int64_t rank) {
      Member member(group, rank);
      barrier(member);
      if (rank == 0) throw DataError("data: planted");
      while (true) std::this_thread::yield();
    });
  };
  EXPECT_EXIT(stuck_run(), testing::ExitedWithCode(1),
              "rank 0: data: planted\ndist/threads: 100 ms later these ranks had not left their "
              "computation: 1\n.*barrier");
}

}  // namespace
}  // namespace sevenfold::threads

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "schedule/search_cases.h"
#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/automatic.h"
#include "sevenfold/schedule/search/improve.h"
#include "sevenfold/schedule/search/lower_bound.h"
#include "sevenfold/schedule/search/steady.h"
#include "sevenfold/schedule/simulate.h"
#include "sevenfold/schedule/validate.h"

namespace sevenfold {
namespace {

// The best of every published scheduler, P = 8, M = 24: each memory limit's shortest makespan.
TEST(Auto, IsNoLongerThanTheBestPublishedUnderAMemoryLimit) {
  const auto makespan = [](double time, double link, double limit) {
    return makespan_within("auto", request_of(8, 24, time, link, limit));
  };
  EXPECT_LE(makespan(1, 0, 4), 83.5);
  EXPECT_LE(makespan(1, 0, 8), 73.75);
  EXPECT_LE(makespan(10, 1, 6), 817);
}

TEST(Auto, FitsWhatOneMicrobatchNeeds) {
  EXPECT_LT(makespan_within("auto", request_of(4, 6, 1, 0, 1)), 6 * 12.0);
}

// The staircases of V schedules and zb-h2 have no bubble then.
TEST(Auto, WithoutABarrierLooksAtTheLongestRank) {
  ScheduleRequest request{.num_ranks = 4, .num_microbatches = 12};
  const Simulation with = simulate(shortest_schedule(request), {});
  request.has_barrier = false;
  const Simulation without = simulate(shortest_schedule(request), {});
  EXPECT_NEAR(without.longest, 36.0, 1e-9);
  EXPECT_GT(with.longest, 36.0);
  EXPECT_LT(with.makespan, without.makespan);
}

TEST(Auto, SaysWhenNothingFits) {
  try {
    generate("auto", request_of(4, 6, 1, 0, 0.5));
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_STREQ(
        error.what(),
        "schedule: no algorithm keeps 4 ranks with 6 micro batches within 0.5 activations per "
        "rank; one micro batch needs 1: use a larger --max-memory, or leave --chunks out");
  }
}

TEST(SearchedSchedules, SayWhatOneMicrobatchTakes) {
  for (const std::string algorithm : {"v-adaptive", "zbv-heuristic"}) {
    try {
      generate(algorithm, request_of(4, 6, 1, 0, 0.5));
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), "schedule: " + algorithm +
                                  " cannot hold less than 1 activations, one micro batch at a "
                                  "time; the limit is 0.5");
    }
  }
}

TEST(ZbvHeuristic, IsNoLongerThanTheOriginal) {
  expect_zbv_rows(7);
}
TEST(OneFOneBV, IsNoLongerThanTheOriginal) {
  expect_1f1b_v_rows(9);
}

TEST(VAdaptive, IsNoLongerThanTheOriginal) {
  expect_adaptive_rows(10);
}
TEST(Improved, IsTheSameEveryTime) {
  const PassProblem problem(request_of(4, 6, 10, 1, 3), Placement::kVee, 2, true);
  const std::vector<PassOrder> seeds = {sequential_order(problem)};
  const PassOrder first = improved(problem, seeds, Objective::kMakespan, {500'000, 0});
  EXPECT_EQ(improved(problem, seeds, Objective::kMakespan, {500'000, 0}), first);
}

TEST(LowerBound, IsReachedWhereTheClosedFormSaysSo) {
  const ScheduleRequest request = request_of(4, 8, 1, 0, 4);
  const PassProblem problem(request, Placement::kVee, 2, true);
  EXPECT_DOUBLE_EQ(lower_bound(problem, Objective::kLongest), 24);
  EXPECT_DOUBLE_EQ(lower_bound(problem, Objective::kMakespan), 25.5);
  EXPECT_DOUBLE_EQ(simulate(generate("zbv-formatted", request), request.costs).makespan, 25.5);
}

TEST(Stretched, CostsNoMoreThanAMicrobatchsWorkForEachMoreAndHoldsNoMore) {
  const ScheduleRequest request = request_of(4, 8, 1, 0, 3);
  const PassProblem core(request, Placement::kVee, 2, false);
  const PassOrder order = to_order(core, generate("1f1b-v", request));
  ASSERT_DOUBLE_EQ(time_of(core, order, Objective::kMakespan), 31.5);
  for (const int64_t count : {7, 8, 9, 40}) {
    const PassProblem wanted(request_of(4, count, 1, 0, 3), Placement::kVee, 2, false);
    const std::optional<PassOrder> longer = stretched(core, order, wanted);
    ASSERT_TRUE(longer) << count;
    EXPECT_EQ(find_fault(to_schedule(wanted, *longer, "stretched")).value_or(""), "") << count;
    EXPECT_DOUBLE_EQ(time_of(wanted, *longer, Objective::kMakespan),
                     7.5 + 3 * static_cast<double>(count));
    EXPECT_LE(peak_of(wanted, *longer), peak_of(core, order)) << count;
  }
}

TEST(Stretched, IsNothingWithoutASteadyStateOrForFarFewerMicrobatches) {
  const PassProblem four(request_of(4, 4, 1, 0, 4), Placement::kVee, 2, false);
  const PassProblem nine(request_of(4, 9, 1, 0, 9), Placement::kVee, 2, false);
  PassOrder by_kind = sequential_order(four);  // all micro batches through a stage at once
  for (std::vector<PassId>& list : by_kind)
    std::stable_sort(list.begin(), list.end(), [&](PassId left, PassId right) {
      const Pass a = four.pass(left);
      const Pass b = four.pass(right);
      if (a.op != b.op) return a.op == Op::kForward;
      return a.op == Op::kForward ? a.stage < b.stage : a.stage > b.stage;
    });
  ASSERT_LT(time_of(four, by_kind, Objective::kMakespan), kUnfinished);
  EXPECT_FALSE(stretched(four, by_kind, nine));
  EXPECT_TRUE(stretched(nine, sequential_order(nine), nine));
  EXPECT_FALSE(stretched(nine, sequential_order(nine), four));
}

TEST(SearchedSchedules, RunTheMicrobatchesOfEachStageInOrder) {
  for (const char* algorithm : {"zbv-heuristic", "v-half", "v-min", "v-zb", "1f1b-v", "v-adaptive"})
    for (const std::vector<Row>& rows : generate(algorithm, request_of(4, 9, 10, 1, 8)).rows) {
      std::map<std::pair<Op, int64_t>, int64_t> next;
      for (const Row& row : rows) EXPECT_EQ(row.microbatch, (next[{row.op, row.stage}]++));
    }
}

TEST(Mirrored, RunsChainsBackwards) {
  const PassProblem problem(request_of(3, 4, 10, 1, 3), Placement::kVee, 2, true);
  const PassProblem mirror = problem.mirrored();
  const PassOrder order = sequential_order(problem);
  EXPECT_DOUBLE_EQ(
      time_of(problem, order, Objective::kMakespan),
      simulate(to_schedule(problem, order, "sequential"), request_of(3, 4, 10, 1, 3).costs)
          .makespan);
  EXPECT_DOUBLE_EQ(peak_of(problem, order), peak_of(mirror, reversed(order)));
  const PassId first = problem.id(Op::kForward, 0, 1);
  EXPECT_EQ(mirror.before[static_cast<size_t>(first)], problem.id(Op::kForward, 1, 1));
  EXPECT_EQ(mirror.hop[static_cast<size_t>(first)], 1);
}

}  // namespace
}  // namespace sevenfold

#include <gtest/gtest.h>

#include <ctime>
#include <utility>

#include "schedule/search_cases.h"

namespace sevenfold {
namespace {

// At most `best`, found in a minute.
void expect_auto_within(const ScheduleRequest& request, double best) {
  const std::clock_t begin = std::clock();
  EXPECT_LE(makespan_within("auto", request), best) << request.max_memory;
  EXPECT_LE(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 60) << request.max_memory;
}

// The best of every published scheduler, P = 8, M = 24: each memory limit's shortest makespan.
TEST(Auto, IsNoLongerThanTheBestPublishedUnderEveryMemoryLimit) {
  const std::pair<double, double> free_links[] = {
      {4, 83.5}, {5, 80.5}, {6, 77.5}, {7, 76.5}, {8, 73.75}};
  for (const auto& [limit, best] : free_links)
    expect_auto_within(request_of(8, 24, 1, 0, limit), best);
  const std::pair<double, double> with_links[] = {{4, 945}, {5, 853}, {6, 817}, {8, 788}};
  for (const auto& [limit, best] : with_links)
    expect_auto_within(request_of(8, 24, 10, 1, limit), best);
}

TEST(ZbvHeuristic, IsNoLongerThanTheOriginalOnAnyRow) {
  expect_zbv_rows(1);
}

TEST(OneFOneBV, IsNoLongerThanTheOriginalOnAnyRow) {
  expect_1f1b_v_rows(1);
}

TEST(VAdaptive, IsNoLongerThanTheOriginalOnAnyRow) {
  expect_adaptive_rows(1);
}

}  // namespace
}  // namespace sevenfold

#include <gtest/gtest.h>

#include <utility>

#include "schedule/search_cases.h"

namespace sevenfold {
namespace {

// The best of every published scheduler, P = 8, M = 24: each memory limit's shortest makespan.
TEST(Auto, IsNoLongerThanTheBestPublishedUnderEveryMemoryLimit) {
  const std::pair<double, double> free_links[] = {
      {4, 83.5}, {5, 80.5}, {6, 77.5}, {7, 76.5}, {8, 73.75}};
  for (const auto& [limit, best] : free_links)
    EXPECT_LE(makespan_within("auto", request_of(8, 24, 1, 0, limit)), best) << limit;
  const std::pair<double, double> with_links[] = {{4, 945}, {5, 853}, {6, 817}, {8, 788}};
  for (const auto& [limit, best] : with_links)
    EXPECT_LE(makespan_within("auto", request_of(8, 24, 10, 1, limit)), best) << limit;
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

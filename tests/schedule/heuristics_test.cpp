#include <gtest/gtest.h>

#include <cmath>

#include "schedule/oracle.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;

// Longest rank and peak no worse than the row's, with its memory limit.
void expect_no_longer(const char* algorithm, const OracleRow& row, double limit) {
  SCOPED_TRACE(row.text());
  ScheduleRequest request = row.request();
  request.max_memory = limit;
  const Simulation result = simulate(generate(algorithm, request), request.costs);
  EXPECT_LE(result.longest, row.longest + kRounding);
  EXPECT_LE(result.max_peak_activation(), row.max_peak() + kRounding);
  if (row.closed_form) {
    EXPECT_NEAR(result.longest, *row.closed_form, kRounding);
  }
}

TEST(ZeroBubbleHeuristic, IsNoLongerThanTheOriginalUnderAnyLimit) {
  const auto expect_all = [](const char* variant, double factor) {
    const std::vector<OracleRow> rows = oracle_rows("ZB-heuristic", variant);
    ASSERT_GE(rows.size(), 40u);
    for (const OracleRow& row : rows)
      expect_no_longer("zero-bubble-heuristic", row, factor * static_cast<double>(row.ranks));
  };
  expect_all("ZB-1p", 1);
  expect_all("limit 1.5P", 1.5);
  expect_all("ZB-2p", 2);
  expect_all("no memory limit", INFINITY);
}

}  // namespace
}  // namespace sevenfold

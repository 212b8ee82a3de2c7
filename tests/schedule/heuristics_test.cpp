#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

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

// Table 5 of arXiv 2401.10241 from the times of its table 9, to the four printed digits.
class PublishedBubbles : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(SEVENFOLD_SOURCE_DIR "/tests/golden/schedules/paper.json");
    const auto document = nlohmann::json::parse(file)["zero_bubble_2401.10241"];
    rates_ = document["table5_bubble_rates"];
    times_ = document["table9_profiled_times_ms"]["rows"];
  }

  // Share of an activation that W needs, from table 1: 32sbh of sb(34h + 5as) per layer.
  static double weight_memory(const std::string& model) {
    const double hidden = model == "1.5B" ? 2304 : 4096;
    const double heads = model == "1.5B" ? 24 : 32;
    return 32 * hidden / (34 * hidden + 5 * heads * 1024);
  }

  void expect_column(const std::string& column, const char* algorithm, double limit_factor) {
    size_t index = 0;
    while (rates_["columns"][index] != column) ++index;
    for (size_t i = 0; i < times_.size(); ++i) {
      const auto& row = times_[i];
      ScheduleRequest request;
      request.num_ranks = row[1];
      request.num_microbatches = row[2];
      request.costs.share = {row[3], row[4], row[5], 1};
      request.costs.link = row[6];
      request.costs.weight_memory = weight_memory(row[0]);
      request.max_memory = limit_factor * static_cast<double>(request.num_ranks);
      const double rate =
          simulate(generate(algorithm, request), request.costs).bubble_rate_longest();
      EXPECT_NEAR(rate, rates_["rows"][i][index].get<double>(), 0.00005 + 1e-9)
          << column << " " << row;
    }
    EXPECT_EQ(times_.size(), 6u);
  }

  nlohmann::json rates_;
  nlohmann::json times_;
};

TEST_F(PublishedBubbles, Of1F1B) {
  expect_column("1F1B", "1f1b", INFINITY);
}
TEST_F(PublishedBubbles, OfZbH1) {
  expect_column("ZB-H1", "zb-h1", INFINITY);
}
TEST_F(PublishedBubbles, OfZbH2) {
  expect_column("ZB-H2", "zb-h2", INFINITY);
}
TEST_F(PublishedBubbles, OfZb1p) {
  expect_column("ZB-1p", "zero-bubble-heuristic", 1);
}
TEST_F(PublishedBubbles, OfZb2p) {
  expect_column("ZB-2p", "zero-bubble-heuristic", 2);
}

}  // namespace
}  // namespace sevenfold

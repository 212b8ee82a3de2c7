#include "schedule/search_cases.h"

#include <gtest/gtest.h>

#include "schedule/oracle.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;

}  // namespace

ScheduleRequest request_of(int64_t ranks, int64_t microbatches, double time, double link,
                           double limit) {
  ScheduleRequest request;
  request.num_ranks = ranks;
  request.num_microbatches = microbatches;
  request.costs.share = {time, time, time, 1};
  request.costs.link = link;
  request.max_memory = limit;
  return request;
}

double makespan_within(const char* algorithm, const ScheduleRequest& request) {
  const Schedule schedule = generate(algorithm, request);
  const Simulation result = simulate(schedule, request.costs);
  EXPECT_LE(result.max_peak_activation(), request.max_memory + kRounding);
  EXPECT_EQ(schedule.num_copies(), 1);
  return result.makespan;
}

void expect_zbv_rows(size_t stride) {
  const std::vector<OracleRow> rows = oracle_rows("ZB-V", "heuristic");
  ASSERT_GE(rows.size(), 40u);
  for (size_t i = 0; i < rows.size(); i += stride) {
    const OracleRow& row = rows[i];
    SCOPED_TRACE(row.text());
    const Simulation result =
        simulate(generate("zbv-heuristic", row.request()), row.request().costs);
    EXPECT_LE(result.longest, row.longest + kRounding);
    EXPECT_LE(result.max_peak_activation(), row.max_peak() + kRounding);
    if (row.closed_form) {
      EXPECT_NEAR(result.longest, *row.closed_form, kRounding);
    }
  }
}

void expect_adaptive_rows(size_t stride) {
  const std::vector<OracleRow> rows = oracle_rows("V-adaptive");
  ASSERT_GE(rows.size(), 40u);
  for (size_t i = 0; i < rows.size(); i += stride) {
    ScheduleRequest request = rows[i].request();
    request.max_memory = rows[i].max_peak();
    EXPECT_LE(makespan_within("v-adaptive", request), rows[i].makespan + kRounding)
        << rows[i].text();
  }
}

void expect_1f1b_v_rows(size_t stride) {
  const std::vector<OracleRow> rows = oracle_rows("1F1B-V");
  ASSERT_GE(rows.size(), 40u);
  for (size_t i = 0; i < rows.size(); i += stride) {
    const OracleRow& row = rows[i];
    SCOPED_TRACE(row.text());
    const Simulation result = simulate(generate("1f1b-v", row.request()), row.request().costs);
    EXPECT_LE(result.makespan, row.makespan + kRounding);
    EXPECT_LE(result.max_peak_activation(), row.max_peak() + kRounding);
  }
}

}  // namespace sevenfold

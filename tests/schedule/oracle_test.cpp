#include "schedule/oracle.h"

#include <gtest/gtest.h>

#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;  // sums of a few thousand dyadic times

// What the table of an algorithm must be to a row of the oracle.
enum class Demand {
  kEqual,    // makespan, longest and the peak of every rank: the same construction
  kNoWorse,  // makespan and peak
};

struct Case {
  const char* schedule;  // of the oracle
  const char* variant;
  const char* algorithm;  // ours
  Demand demand = Demand::kEqual;
  bool group_is_all = false;  // interleaved: one group of all micro batches
  bool fused = true;          // DualPipe's cells
};

void expect_row(const Case& that, const OracleRow& row) {
  SCOPED_TRACE(row.text());
  ScheduleRequest request = row.request();
  if (that.group_is_all) request.group_size = row.microbatches;
  Schedule schedule = generate(that.algorithm, request);
  if (!that.fused) schedule = without_fused_rows(schedule);
  const Simulation result = simulate(schedule, request.costs);
  switch (that.demand) {
    case Demand::kEqual:
      EXPECT_NEAR(result.makespan, row.makespan, kRounding);
      EXPECT_NEAR(result.longest, row.longest, kRounding);
      for (size_t rank = 0; rank < row.peaks.size(); ++rank)
        EXPECT_NEAR(result.peak_activation[rank], row.peaks[rank], kRounding) << "rank " << rank;
      break;
    case Demand::kNoWorse:
      EXPECT_LE(result.makespan, row.makespan + kRounding);
      EXPECT_LE(result.max_peak_activation(), row.max_peak() + kRounding);
      break;
  }
  if (row.closed_form) {
    EXPECT_NEAR(result.longest, *row.closed_form, kRounding);
  }
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.schedule) + info.param.variant;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}

class Oracle : public testing::TestWithParam<Case> {};

TEST_P(Oracle, AgreesOnEveryRow) {
  const std::vector<OracleRow> rows = oracle_rows(GetParam().schedule, GetParam().variant);
  ASSERT_GE(rows.size(), 20u);
  for (const OracleRow& row : rows) expect_row(GetParam(), row);
}

INSTANTIATE_TEST_SUITE_P(Searches, Oracle,
                         testing::Values(Case{"V-Half", "", "v-half", Demand::kNoWorse},
                                         Case{"V-Min", "", "v-min", Demand::kNoWorse}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Constructions, Oracle,
    testing::Values(
        Case{"GPipe", "", "gpipe"}, Case{"1F1B", "", "1f1b"}, Case{"LoopedBFS", "", "looped-bfs"},
        Case{"Interleaved1F1B", "v=2$", "1f1b-interleaved"},
        Case{"Interleaved1F1B", "v=2 flexible", "1f1b-interleaved"},
        Case{"Interleaved1F1B", "v=2 group=M", "1f1b-interleaved", Demand::kEqual, true},
        Case{"Interleaved1F1B", "v=4", "1f1b-interleaved"},
        Case{"ZB-H1", "", "zb-h1", Demand::kNoWorse}, Case{"ZB-H2", "", "zb-h2"},
        Case{"InterleavedZB-H1", "", "zb-interleaved"}, Case{"ZB-V", "formatted", "zbv-formatted"},
        Case{"DualPipe", "fused", "dualpipe"},
        Case{"DualPipe", "unfused", "dualpipe", Demand::kEqual, false, false},
        Case{"DualPipeV", "fused", "dualpipev"},
        Case{"DualPipeV", "unfused", "dualpipev", Demand::kEqual, false, false}),
    name_of);

}  // namespace
}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/schedule/request.h"

namespace sevenfold {

// A measured row of tests/golden/schedules/oracle.json.
struct OracleRow {
  std::string schedule;
  std::string variant;
  int64_t chunks = 1;
  int64_t ranks = 1;
  int64_t microbatches = 1;
  double time = 1;  // of F, of B and of W through a rank's share
  double link = 0;
  double makespan = 0;
  double longest = 0;
  std::optional<double> closed_form;  // of `longest`
  std::vector<double> peaks;

  double max_peak() const;
  ScheduleRequest request() const;
  std::string text() const;  // for failure messages
};

// All rows whose schedule is `schedule` and whose variant begins with `variant`; with a "$" at its
// end, is the rest of `variant`.
std::vector<OracleRow> oracle_rows(const std::string& schedule, const std::string& variant = "");

}  // namespace sevenfold

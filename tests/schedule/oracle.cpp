#include "schedule/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sevenfold {
namespace {

const nlohmann::json& document() {
  static const nlohmann::json kDocument = [] {
    std::ifstream file(SEVENFOLD_SOURCE_DIR "/tests/golden/schedules/oracle.json");
    return nlohmann::json::parse(file);
  }();
  return kDocument;
}

}  // namespace

double OracleRow::max_peak() const {
  return *std::max_element(peaks.begin(), peaks.end());
}

ScheduleRequest OracleRow::request() const {
  ScheduleRequest request;
  request.num_ranks = ranks;
  request.num_microbatches = microbatches;
  request.num_chunks = chunks;
  request.costs.share = {time, time, time, 1};
  request.costs.link = link;
  return request;
}

std::string OracleRow::text() const {
  return fmt::format("{} [{}] P={} M={} v={} time {} link {}", schedule, variant, ranks,
                     microbatches, chunks, time, link);
}

std::vector<OracleRow> oracle_rows(const std::string& schedule, const std::string& variant) {
  std::vector<OracleRow> rows;
  for (const auto& row : document()["rows"]) {
    const auto& kind = document()["kinds"][row[0].get<size_t>()];
    OracleRow one;
    one.schedule = kind["schedule"];
    one.variant = kind["variant"];
    one.chunks = kind["chunks"];
    if (one.schedule != schedule || (one.variant + "$").rfind(variant, 0) != 0) continue;
    one.ranks = row[1];
    one.microbatches = row[2];
    one.time = row[3];
    one.link = row[4];
    one.makespan = row[5];
    one.longest = row[6];
    if (!row[7].is_null()) one.closed_form = row[7].get<double>();
    one.peaks = row[8].get<std::vector<double>>();
    rows.push_back(std::move(one));
  }
  return rows;
}

}  // namespace sevenfold

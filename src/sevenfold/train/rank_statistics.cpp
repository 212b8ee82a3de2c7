#include "sevenfold/train/rank_statistics.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sevenfold {
namespace {

constexpr int64_t kNumbers = 6;
constexpr int64_t kStatistics = kNumbers + kNumMemoryCategories;

double share_of_idleness(const std::vector<RankStatistics>& all, double time_s) {
  double busy = 0.0;
  for (const RankStatistics& rank : all) busy += rank.busy_s;
  const double time = time_s * static_cast<double>(all.size());
  return time > 0.0 ? 1.0 - busy / time : 0.0;
}

}  // namespace

StatisticsExchange::StatisticsExchange(const RankStatistics& mine, const RankContext& rank) {
  const at::TensorOptions fp64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor input = at::empty({kStatistics}, fp64);
  auto* values = input.data_ptr<double>();
  values[0] = static_cast<double>(mine.stop);
  values[1] = mine.blocked_s;
  values[2] = mine.peak_bytes;
  values[3] = mine.first_start_s;
  values[4] = mine.last_end_s;
  values[5] = mine.busy_s;
  std::copy(mine.peak_by_category.begin(), mine.peak_by_category.end(), values + kNumbers);
  Communicator& world = rank.group("world");
  all_ = at::empty({world.size(), kStatistics}, fp64);
  gather_ = world.all_gather(all_.view({-1}), input);
}

std::vector<RankStatistics> StatisticsExchange::finish() {
  gather_.wait();
  std::vector<RankStatistics> all(static_cast<size_t>(all_.size(0)));
  const auto* gathered = all_.data_ptr<double>();
  for (RankStatistics& statistics : all) {
    statistics.stop = static_cast<StopReason>(static_cast<int>(gathered[0]));
    statistics.blocked_s = gathered[1];
    statistics.peak_bytes = gathered[2];
    statistics.first_start_s = gathered[3];
    statistics.last_end_s = gathered[4];
    statistics.busy_s = gathered[5];
    std::copy(gathered + kNumbers, gathered + kStatistics, statistics.peak_by_category.begin());
    gathered += kStatistics;
  }
  return all;
}

RankStatistics statistics_of(const RankContext& rank, StopReason stop, double blocked_before_s,
                             const Execution& execution) {
  RankStatistics statistics{.stop = stop,
                            .blocked_s = rank.traffic.total().seconds_blocked - blocked_before_s,
                            .first_start_s = execution.first_start_s,
                            .last_end_s = execution.last_end_s,
                            .busy_s = execution.busy_s,
                            .peak_bytes = static_cast<double>(rank.memory.peak_total())};
  const auto at_peak = rank.memory.at_peak();
  std::transform(at_peak.begin(), at_peak.end(), statistics.peak_by_category.begin(),
                 [](int64_t bytes) { return static_cast<double>(bytes); });
  return statistics;
}

double bubble_rate(const std::vector<RankStatistics>& all) {
  double first = all.front().first_start_s, last = all.front().last_end_s;
  for (const RankStatistics& rank : all) {
    first = std::min(first, rank.first_start_s);
    last = std::max(last, rank.last_end_s);
  }
  return share_of_idleness(all, last - first);
}

double bubble_rate_without_barrier(const std::vector<RankStatistics>& all) {
  double longest = 0.0;
  for (const RankStatistics& rank : all)
    longest = std::max(longest, rank.last_end_s - rank.first_start_s);
  return share_of_idleness(all, longest);
}

PeakMemory fullest_rank(const std::vector<RankStatistics>& all) {
  const auto fullest = std::max_element(
      all.begin(), all.end(),
      [](const auto& left, const auto& right) { return left.peak_bytes < right.peak_bytes; });
  PeakMemory peak{.total_bytes = static_cast<int64_t>(fullest->peak_bytes)};
  std::transform(fullest->peak_by_category.begin(), fullest->peak_by_category.end(),
                 peak.category_bytes.begin(),
                 [](double bytes) { return static_cast<int64_t>(bytes); });
  return peak;
}

}  // namespace sevenfold

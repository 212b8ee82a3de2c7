#include "sevenfold/schedule/replay.h"

#include <algorithm>

namespace sevenfold {
namespace {

constexpr double kNotYet = -1;

// Ends of passes by stage and micro batch.
class EndTimes {
 public:
  EndTimes(const Schedule& schedule, double link)
      : schedule_(schedule),
        link_(link),
        forward_(static_cast<size_t>(schedule.num_stages * schedule.num_microbatches), kNotYet),
        backward_(forward_) {}

  // When the pass has what it needs; kNotYet while something has not run, which is then `missing`.
  double arrival(const Pass& pass, Pass& missing) const {
    const int64_t stage = pass.stage;
    switch (pass.op) {
      case Op::kForward:
        if (stage == 0) return 0;
        return handed_over(forward_, Op::kForward, stage - 1, pass, missing);
      case Op::kBackwardWeight:
        return own(backward_, Op::kBackwardInput, pass, missing);
      default:
        break;
    }
    const double forward = own(forward_, Op::kForward, pass, missing);
    if (forward == kNotYet || stage == schedule_.num_stages - 1) return forward;
    const double gradient = handed_over(backward_, pass.op, stage + 1, pass, missing);
    return gradient == kNotYet ? kNotYet : std::max(forward, gradient);
  }

  void record(const Pass& pass, double end) {
    if (pass.op == Op::kForward)
      forward_[at(pass.stage, pass.microbatch)] = end;
    else if (pass.op != Op::kBackwardWeight)
      backward_[at(pass.stage, pass.microbatch)] = end;
  }

 private:
  size_t at(int64_t stage, int64_t microbatch) const {
    return static_cast<size_t>(stage * schedule_.num_microbatches + microbatch);
  }

  double own(const std::vector<double>& ends, Op op, const Pass& pass, Pass& missing) const {
    const double end = ends[at(pass.stage, pass.microbatch)];
    if (end == kNotYet) missing = {op, pass.stage, pass.chunk, pass.microbatch, pass.flow};
    return end;
  }

  double handed_over(const std::vector<double>& ends, Op op, int64_t from, const Pass& pass,
                     Pass& missing) const {
    const int64_t num_ranks = schedule_.num_ranks();
    const StageSite source = site_of(schedule_.placement, num_ranks, from, pass.flow);
    const double end = ends[at(from, pass.microbatch)];
    if (end == kNotYet) {
      missing = {op, from, source.chunk, pass.microbatch, pass.flow};
      return kNotYet;
    }
    const StageSite target = site_of(schedule_.placement, num_ranks, pass.stage, pass.flow);
    return source.rank == target.rank ? end : end + link_;
  }

  const Schedule& schedule_;
  double link_;
  std::vector<double> forward_;  // [stage, micro batch]
  std::vector<double> backward_;
};

// When all passes of the row have what they need.
double arrival_of_row(const EndTimes& ends, const Row& row, Pass& missing) {
  double latest = 0;
  for (const Pass& pass : passes_of(row)) {
    const double arrival = ends.arrival(pass, missing);
    if (arrival == kNotYet) return kNotYet;
    latest = std::max(latest, arrival);
  }
  return latest;
}

}  // namespace

Replay replay(const Schedule& schedule, const ScheduleCosts& costs) {
  const std::vector<PassCosts> stages =
      stage_costs(costs, schedule.num_ranks(), schedule.num_stages);
  EndTimes ends(schedule, costs.link);
  Replay result;
  result.spans.resize(schedule.rows.size());
  Pass missing;
  // One rank as far as it gets, then the next; until a round moves nobody.
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < schedule.rows.size(); ++rank) {
      std::vector<RowSpan>& spans = result.spans[rank];
      for (; spans.size() < schedule.rows[rank].size(); moved = true) {
        const Row& row = schedule.rows[rank][spans.size()];
        const double arrival = arrival_of_row(ends, row, missing);
        if (arrival == kNotYet) break;
        const double start = spans.empty() ? arrival : std::max(arrival, spans.back().end);
        const double end = start + row_time(row, stages);
        for (const Pass& pass : passes_of(row)) ends.record(pass, end);
        result.order.push_back({static_cast<int64_t>(rank), spans.size()});
        spans.push_back({start, end});
      }
    }
  }
  for (size_t rank = 0; rank < schedule.rows.size(); ++rank) {
    const size_t position = result.spans[rank].size();
    if (position == schedule.rows[rank].size()) continue;
    arrival_of_row(ends, schedule.rows[rank][position], missing);
    result.stuck.push_back({{static_cast<int64_t>(rank), position}, missing});
  }
  return result;
}

}  // namespace sevenfold

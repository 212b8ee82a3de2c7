#include <algorithm>
#include <optional>
#include <vector>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;

// Choices that the heuristic leaves open; all eight combinations are tried.
struct Choices {
  bool waits_for_first_b = false;  // else one more F runs before the first B, and may delay it
  bool prefers_b = false;          // leaves an F out that would delay the next B
  bool always_fills = false;       // W even into gaps that are shorter than it
};

enum Kind : size_t { kF, kB, kW };

// One run: the passes of all ranks are issued in turn, each at the earliest time.
class Run {
 public:
  Run(const ScheduleRequest& request, const std::vector<PassCosts>& costs, Choices choices)
      : costs_(costs),
        ranks_(costs.size()),
        microbatches_(static_cast<size_t>(request.num_microbatches)),
        link_(request.costs.link),
        kept_(request.costs.weight_memory),
        limit_(request.max_memory * (1 + kRounding)),
        choices_(choices),
        states_(ranks_) {
    for (State& state : states_)
      for (std::vector<double>& ends : state.end) ends.resize(microbatches_);
  }

  // False if some rank cannot keep within the limit.
  bool finish() {
    first_microbatch();
    for (size_t m = 1; m < microbatches_ && fits_; ++m) next_microbatch();
    for (size_t rank = 0; rank < ranks_; ++rank)
      while (has_weight(rank)) issue(rank, kW);
    return fits_;
  }

  double longest() const {
    double longest = 0;
    for (size_t rank = 0; rank < ranks_; ++rank)
      longest = std::max(longest, states_[rank].now - states_[rank].end[kF][0] + time(rank, kF));
    return longest;
  }

  void write(Schedule& schedule) const {
    constexpr Op kOps[] = {Op::kForward, Op::kBackwardInput, Op::kBackwardWeight};
    for (size_t rank = 0; rank < ranks_; ++rank) {
      size_t count[3] = {0, 0, 0};
      for (const Kind kind : states_[rank].issued)
        append(schedule, static_cast<int64_t>(rank), kOps[kind], 0,
               static_cast<int64_t>(count[kind]++));
    }
  }

 private:
  struct State {
    double now = 0;     // end of its last pass
    double held = 0;    // memory
    double bubble = 0;  // idle time since its first pass
    size_t count[3] = {0, 0, 0};
    std::vector<double> end[3];  // by kind and micro batch
    std::vector<Kind> issued;
  };

  double time(size_t rank, Kind kind) const {
    const PassCosts& costs = costs_[rank];
    return kind == kF ? costs.forward : kind == kB ? costs.backward_input : costs.backward_weight;
  }
  double memory(size_t rank, Kind kind) const {
    const double activation = costs_[rank].activation;
    return kind == kF ? activation : kind == kB ? -(1 - kept_) * activation : -kept_ * activation;
  }
  bool has_weight(size_t rank) const { return states_[rank].count[kW] < states_[rank].count[kB]; }
  // When the next F or B of the rank has its input.
  double arrival(size_t rank, Kind kind) const {
    const size_t m = states_[rank].count[kind];
    if (kind == kF) return rank == 0 ? 0 : states_[rank - 1].end[kF][m] + link_;
    if (kind == kB && rank + 1 == ranks_) return states_[rank].end[kF][m];
    if (kind == kB) return states_[rank + 1].end[kB][m] + link_;
    return 0;
  }

  void issue(size_t rank, Kind kind) {
    State& state = states_[rank];
    const double start = std::max(state.now, arrival(rank, kind));
    if (!state.issued.empty()) state.bubble += start - state.now;
    state.now = start + time(rank, kind);
    state.end[kind][state.count[kind]++] = state.now;
    state.held += memory(rank, kind);
    state.issued.push_back(kind);
  }

  // How much the rank may idle without idling more than the one that has idled most.
  double spare_bubble(size_t rank) const {
    double most = 0;
    for (const State& state : states_) most = std::max(most, state.bubble);
    return most - states_[rank].bubble;
  }

  // Ws before the rank's next F or B: those that memory forces, those that fit before its input
  // arrives, and into a shorter gap one more, if idling would make this rank the worst.
  void fill_with_weights(size_t rank, Kind next) {
    State& state = states_[rank];
    while (state.held + memory(rank, next) > limit_) {
      if (!has_weight(rank)) {
        fits_ = false;
        return;
      }
      issue(rank, kW);
    }
    const double arrives = arrival(rank, next);
    const double weight = time(rank, kW);
    while (has_weight(rank) && state.now + weight <= arrives + kRounding) issue(rank, kW);
    const double gap = arrives - state.now;
    if (has_weight(rank) && gap > kRounding &&
        (choices_.always_fills || gap > spare_bubble(rank) + kRounding))
      issue(rank, kW);
  }

  // Fs that a rank may run before the first B reaches it, `arrives`; from its `now` on.
  size_t extra_forwards(size_t rank, double arrives, double& now) const {
    const State& state = states_[rank];
    size_t extra = 0;
    double held = state.held;
    while (state.count[kF] + extra < microbatches_) {
      held += memory(rank, kF);
      if (held > limit_) break;
      if (choices_.waits_for_first_b ? now + time(rank, kF) > arrives + kRounding
                                     : now >= arrives - kRounding)
        break;
      now += time(rank, kF);
      ++extra;
    }
    return extra;
  }

  void first_microbatch() {
    for (size_t rank = 0; rank < ranks_; ++rank) issue(rank, kF);
    std::vector<size_t> extra(ranks_, 0);
    double gradient = states_.back().now + time(ranks_ - 1, kB);
    for (size_t rank = ranks_ - 1; rank-- > 0;) {
      double now = states_[rank].now;
      extra[rank] = extra_forwards(rank, gradient + link_, now);
      gradient = std::max(now, gradient + link_) + time(rank, kB);
    }
    // A rank warms up less than the one before it, unless forwards run out.
    for (size_t rank = 1; rank < ranks_; ++rank)
      while (extra[rank] > 0 && extra[rank] >= extra[rank - 1] &&
             states_[rank].count[kF] + extra[rank] < microbatches_)
        --extra[rank];
    for (size_t rank = 0; rank < ranks_; ++rank)
      for (size_t i = 0; i < extra[rank]; ++i) issue(rank, kF);
    for (size_t rank = ranks_; rank-- > 0;) issue(rank, kB);
  }

  // Whether the rank runs an F before its next B.
  bool wants_forward(size_t rank) const {
    const State& state = states_[rank];
    if (state.count[kF] >= microbatches_) return false;
    if (!choices_.prefers_b || rank + 1 == ranks_) return true;
    const State& next = states_[rank + 1];
    if (state.count[kF] < next.count[kF] + 2) return true;
    const double forward = std::max(next.now, state.end[kF][next.count[kF]] + link_);
    const double gradient = forward + time(rank + 1, kF) + time(rank + 1, kB) + link_;
    if (state.now + time(rank, kF) <= gradient + kRounding) return true;
    return gradient - state.now > spare_bubble(rank) + kRounding;
  }

  void next_microbatch() {
    std::vector<char> forward(ranks_);
    for (size_t rank = 0; rank < ranks_; ++rank) forward[rank] = wants_forward(rank) ? 1 : 0;
    for (size_t rank = ranks_ - 1; rank-- > 0;)
      if (forward[rank + 1] == 0) forward[rank] = 0;
    for (size_t rank = 0; rank < ranks_; ++rank) {
      if (forward[rank] == 0) continue;
      fill_with_weights(rank, kF);
      if (!fits_) return;
      issue(rank, kF);
    }
    for (size_t rank = ranks_; rank-- > 0;) {
      fill_with_weights(rank, kB);
      if (rank == 0 && states_[0].count[kF] == microbatches_)
        while (has_weight(0)) issue(0, kW);
      issue(rank, kB);
    }
  }

  const std::vector<PassCosts>& costs_;
  size_t ranks_;
  size_t microbatches_;
  double link_;
  double kept_;
  double limit_;
  Choices choices_;
  std::vector<State> states_;
  bool fits_ = true;
};

}  // namespace

Schedule zero_bubble_heuristic(const ScheduleRequest& request) {
  const std::vector<PassCosts> costs =
      stage_costs(request.costs, request.num_ranks, request.num_ranks);
  std::optional<Run> best;
  for (int bits = 0; bits < 8; ++bits) {
    Run run(request, costs, {(bits & 4) != 0, (bits & 2) != 0, (bits & 1) != 0});
    if (run.finish() && (!best || run.longest() < best->longest() - kRounding))
      best.emplace(std::move(run));
  }
  if (!best)
    raise<ConfigError>(
        "schedule: zero-bubble-heuristic finds no schedule of {} ranks within {} activations; "
        "v-half and "
        "v-min need less",
        request.num_ranks, request.max_memory);
  Schedule schedule = empty_schedule("zero-bubble-heuristic", Placement::kLinear, request, 1);
  best->write(schedule);
  return schedule;
}

}  // namespace sevenfold

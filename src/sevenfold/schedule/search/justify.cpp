#include "sevenfold/schedule/search/justify.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;
constexpr double kNotYet = -1;
// How far down its list a rank looks: memory is full long before.
constexpr size_t kWindow = 512;

size_t at(PassId pass) {
  return static_cast<size_t>(pass);
}

// One rank of a run: its list as a linked one, from which passes are taken anywhere.
struct RankState {
  const std::vector<PassId>* list = nullptr;
  std::vector<size_t> next;
  size_t head = 0;
  double free_at = 0;
  double held = 0;
};

// An event-driven run in which ranks choose among their next passes.
class Run {
 public:
  Run(const PassProblem& problem, const PassOrder& order, Patience patience,
      const std::vector<double>& released)
      : problem_(problem),
        patience_(patience),
        tolerance_(kRounding * (1 + problem.duration.front())),
        end_(problem.duration.size(), kNotYet),
        ranks_(order.size()),
        result_(order.size()) {
    for (size_t rank = 0; rank < order.size(); ++rank) {
      ranks_[rank].list = &order[rank];
      ranks_[rank].next.resize(order[rank].size());
      for (size_t i = 0; i < order[rank].size(); ++i) ranks_[rank].next[i] = i + 1;
      result_[rank].reserve(order[rank].size());
      if (!released.empty()) ranks_[rank].free_at = released[rank];
      wake_.push({ranks_[rank].free_at, rank});
    }
  }

  PassOrder result() {
    while (!wake_.empty()) {
      const auto [now, rank] = wake_.top();
      wake_.pop();
      if (ranks_[rank].free_at <= now + tolerance_) choose(rank, now);
    }
    return std::move(result_);
  }

 private:
  // When the pass has what it needs; kNotYet while that is not known.
  double arrival(PassId pass) const {
    double latest = 0;
    if (const PassId before = problem_.before[at(pass)]; before != kNoPass) {
      if (end_[at(before)] == kNotYet) return kNotYet;
      latest = end_[at(before)] + problem_.hop[at(pass)];
    }
    if (const PassId before = problem_.also_before[at(pass)]; before != kNoPass) {
      if (end_[at(before)] == kNotYet) return kNotYet;
      latest = std::max(latest, end_[at(before)]);
    }
    return latest;
  }

  // Runs the first pass of the list that can start now and leaves room for all that it overtakes.
  void choose(size_t rank, double now) {
    RankState& state = ranks_[rank];
    const std::vector<PassId>& list = *state.list;
    double running = state.held;    // if all passes looked at so far had run
    double highest = -kUnfinished;  // of `running`, at the starts of those that take memory
    double soonest = kUnfinished;   // arrival of a pass that is earlier in the list
    size_t previous = list.size();
    size_t seen = 0;
    for (size_t i = state.head; i < list.size() && seen < kWindow; i = state.next[i], ++seen) {
      const PassId pass = list[i];
      const double taken = problem_.taken[at(pass)];
      const double arrives = arrival(pass);
      const bool fits =
          taken == 0 || taken + std::max(state.held, highest) <= problem_.memory + kRounding;
      if (arrives != kNotYet && fits) {
        if (arrives <= now + tolerance_) {
          const double factor = problem_.kind(pass) == 2 ? patience_.weight : patience_.other;
          if (soonest >= now + factor * problem_.duration[at(pass)] - tolerance_)
            run(rank, i, previous, now);
          return;
        }
        soonest = std::min(soonest, arrives);
      }
      running += taken;
      if (taken > 0) highest = std::max(highest, running);
      running -= problem_.freed[at(pass)];
      previous = i;
    }
  }

  void run(size_t rank, size_t index, size_t previous, double now) {
    RankState& state = ranks_[rank];
    const PassId pass = (*state.list)[index];
    (index == state.head ? state.head : state.next[previous]) = state.next[index];
    const double end = now + problem_.duration[at(pass)];
    end_[at(pass)] = state.free_at = end;
    state.held += problem_.taken[at(pass)] - problem_.freed[at(pass)];
    result_[rank].push_back(pass);
    wake_.push({end, rank});
    // `also_after` is on this rank, which wakes anyway.
    if (const PassId after = problem_.after[at(pass)]; after != kNoPass)
      wake_.push({end + problem_.hop[at(after)], static_cast<size_t>(problem_.rank[at(after)])});
  }

  const PassProblem& problem_;
  Patience patience_;
  double tolerance_;
  std::vector<double> end_;
  std::vector<RankState> ranks_;
  PassOrder result_;
  using Wake = std::pair<double, size_t>;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wake_;
};

}  // namespace

std::vector<double> end_times(const PassProblem& problem, const PassOrder& order) {
  std::vector<double> end(problem.duration.size(), kNotYet);
  std::vector<size_t> position(order.size(), 0);
  std::vector<double> free_at(order.size(), 0);
  size_t left = problem.duration.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < order.size(); ++rank)
      for (; position[rank] < order[rank].size(); ++position[rank], --left, moved = true) {
        const PassId pass = order[rank][position[rank]];
        double start = free_at[rank];
        if (const PassId before = problem.before[at(pass)]; before != kNoPass) {
          if (end[at(before)] == kNotYet) break;
          start = std::max(start, end[at(before)] + problem.hop[at(pass)]);
        }
        free_at[rank] = end[at(pass)] = start + problem.duration[at(pass)];
      }
  }
  if (left > 0) end.clear();
  return end;
}

double time_of(const PassProblem& problem, const PassOrder& order, Objective objective) {
  const std::vector<double> end = end_times(problem, order);
  if (end.empty()) return kUnfinished;
  double result = 0;
  for (const std::vector<PassId>& list : order) {
    const PassId first = list.front();
    const double start = end[at(first)] - problem.duration[at(first)];
    const double idle = objective == Objective::kLongest ? start : 0;
    result = std::max(result, end[at(list.back())] - idle);
  }
  return result;
}

double peak_of(const PassProblem& problem, const PassOrder& order) {
  double peak = 0;
  for (const std::vector<PassId>& list : order) {
    double held = 0;
    for (const PassId pass : list) {
      held += problem.taken[at(pass)];
      peak = std::max(peak, held);
      held -= problem.freed[at(pass)];
    }
  }
  return peak;
}

PassOrder justified(const PassProblem& problem, const PassOrder& order, Patience patience,
                    const std::vector<double>& released) {
  return Run(problem, order, patience, released).result();
}

std::vector<double> Justifier::stagger(Objective objective) const {
  if (objective == Objective::kMakespan) return {};
  std::vector<double> start(static_cast<size_t>(forward.num_ranks), kUnfinished);
  double elapsed = 0;
  double last = 0;
  for (PassId pass = forward.id(Op::kForward, 0, 0); pass != kNoPass;
       pass = forward.after[at(pass)]) {
    elapsed += forward.hop[at(pass)];
    double& first = start[static_cast<size_t>(forward.rank[at(pass)])];
    if (first == kUnfinished) first = last = elapsed;
    elapsed += forward.duration[at(pass)];
  }
  for (double& value : start) value = last - value;
  return start;
}

PassOrder Justifier::improve(PassOrder order, Patience patience, int max_rounds,
                             Objective objective) const {
  PassOrder best = order;
  double best_time = time_of(forward, order, objective);
  const std::vector<double> ends = stagger(objective);
  for (int round = 0; round < max_rounds; ++round) {
    order = justified(forward, order, patience);
    const double time = time_of(forward, order, objective);
    if (time < best_time - kRounding) {
      best_time = time;
      best = order;
    } else if (round > 0) {
      break;
    }
    order = reversed(justified(backward, reversed(std::move(order)), patience, ends));
  }
  return best;
}

}  // namespace sevenfold

#include "sevenfold/schedule/search/improve.h"

#include <algorithm>
#include <random>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;
constexpr int kSeedRounds = 20;      // justifications of a seed
constexpr int kTrialRounds = 3;      // and of a trial
constexpr int kTrialsPerWalk = 500;  // then it goes back to the best
constexpr double kSlack = 2;         // how much longer the walk may get, in shortest passes
constexpr int kMaxMoves = 6;         // passes moved in a trial
constexpr int kMaxDistance = 12;     // places that a pass moves
constexpr Patience kSeedPatience[] = {{0, 0}, {1, 0}, {1, 1}, {2, 2}};
constexpr double kPatience[] = {0, 0.25, 0.5, 1};

class Search {
 public:
  Search(const PassProblem& problem, Objective objective, SearchEffort effort)
      : problem_(problem),
        justifier_(problem),
        objective_(objective),
        left_(effort.passes),
        enough_(effort.enough * (1 + kRounding)),
        slack_(kSlack * *std::min_element(problem.duration.begin(), problem.duration.end())) {}

  void try_seed(const PassOrder& seed) {
    if (!is_legal(seed)) return;
    take(seed, time_of(problem_, seed, objective_));
    for (const Patience patience : kSeedPatience) {
      if (is_done()) return;
      PassOrder order = justifier_.improve(seed, patience, kSeedRounds, objective_);
      const double time = time_of(problem_, order, objective_);
      take(std::move(order), time);
      spend(4 * kTrialRounds);
    }
  }

  void try_neighbour() {
    if (++trial_ % kTrialsPerWalk == 0) current_ = best_;
    PassOrder order = current_;
    const int moves = 1 + draw(kMaxMoves);
    for (int i = 0; i < moves; ++i) move_one(order);
    spend(1);
    if (!is_legal(order)) return;
    if (draw(4) != 0) {
      const Patience patience = {kPatience[draw(4)], kPatience[draw(4)]};
      order = justifier_.improve(std::move(order), patience, kTrialRounds, objective_);
      spend(2 * kTrialRounds);
    }
    const double time = time_of(problem_, order, objective_);
    // Every second walk may get longer before it gets shorter.
    const bool is_loose = trial_ / kTrialsPerWalk % 2 == 1;
    if (time > best_time_ + (is_loose ? slack_ : 0) + kRounding) return;
    current_ = order;
    take(std::move(order), time);
  }

  bool is_done() const { return left_ <= 0 || best_time_ <= enough_; }
  bool has_order() const { return best_time_ < kUnfinished; }
  PassOrder best() && { return std::move(best_); }

 private:
  // Not std::uniform_int_distribution, whose numbers differ between libraries.
  int draw(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }

  bool is_legal(const PassOrder& order) const {
    return peak_of(problem_, order) <= problem_.memory + kRounding &&
           time_of(problem_, order, objective_) < kUnfinished;
  }

  void move_one(PassOrder& order) {
    std::vector<PassId>& list = order[static_cast<size_t>(draw(static_cast<int>(order.size())))];
    const int size = static_cast<int>(list.size());
    const int from = draw(size);
    const int distance = 1 + draw(kMaxDistance);
    const int to = std::clamp(draw(2) == 0 ? from - distance : from + distance, 0, size - 1);
    const auto begin = list.begin();
    if (to < from)
      std::rotate(begin + to, begin + from, begin + from + 1);
    else
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
  }

  void take(PassOrder order, double time) {
    if (time > best_time_ + kRounding) return;
    best_ = std::move(order);
    best_time_ = time;
    current_ = best_;
  }

  void spend(int64_t runs) { left_ -= runs * static_cast<int64_t>(problem_.duration.size()); }

  const PassProblem& problem_;
  Justifier justifier_;
  Objective objective_;
  int64_t left_;
  double enough_;
  double slack_;
  std::mt19937_64 random_{1};
  PassOrder best_;
  PassOrder current_;  // where the walk stands: not much longer than the best
  int64_t trial_ = 0;
  double best_time_ = kUnfinished;
};

}  // namespace

PassOrder improved(const PassProblem& problem, const std::vector<PassOrder>& seeds,
                   Objective objective, SearchEffort effort) {
  Search search(problem, objective, effort);
  for (const PassOrder& seed : seeds) search.try_seed(seed);
  SEVENFOLD_CHECK(search.has_order(), "no seed of {} fits", seeds.size());
  while (!search.is_done()) search.try_neighbour();
  return std::move(search).best();
}

}  // namespace sevenfold

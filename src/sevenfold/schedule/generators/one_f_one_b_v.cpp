#include <algorithm>

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/v_search.h"
#include "sevenfold/schedule/search/lower_bound.h"
#include "sevenfold/schedule/search/steady.h"

namespace sevenfold {
namespace {

// Of a search for short ends; among many ranks' passes it would find nothing in that time.
constexpr int64_t kEndsEffort = 5 * kBlockEffort;
constexpr int64_t kMaxRanksSearched = 16;

// A block that fills its six slots (F and F of one slot, BW and BW of two) on every rank:
// neighbours run forwards one slot apart and backwards 2 or 5 slots apart, in turns of three ranks,
// so that the residues never collide. On average a micro batch stays 8P slots: two thirds of the
// 12P of 1F1B.
VBlock one_f_one_b_v_block(int64_t num_ranks, int64_t first_turn, const double (&gaps)[3]) {
  constexpr double kTurns[3][2] = {{2, 2}, {2, 5}, {5, 2}};  // of chunk 1, of chunk 0
  const auto turn = [&](int64_t rank, int chunk) {
    return kTurns[(first_turn + rank) % 3][chunk == 1 ? 0 : 1];
  };
  const int64_t last = num_ranks - 1;
  VBlock block;
  block.ranks.resize(static_cast<size_t>(num_ranks));
  const auto slots = [&](int64_t rank) -> VBlock::Slots& {
    return block.ranks[static_cast<size_t>(rank)];
  };
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    slots(rank).forward[0] = static_cast<double>(rank);
    slots(rank).forward[1] = static_cast<double>(2 * last - rank) + gaps[0];
  }
  slots(0).backward[1] = slots(0).forward[1] + gaps[1];
  for (int64_t rank = 1; rank < num_ranks; ++rank)
    slots(rank).backward[1] = slots(rank - 1).backward[1] + turn(rank - 1, 1);
  slots(last).backward[0] = slots(last).backward[1] + gaps[2];
  for (int64_t rank = last - 1; rank >= 0; --rank)
    slots(rank).backward[0] = slots(rank + 1).backward[0] + turn(rank, 0);
  return block;
}

// The block repeated, for all its turns and gaps; the first has the least memory.
std::vector<PassOrder> one_f_one_b_v_seeds(const PassProblem& problem) {
  const int64_t ranks = problem.num_ranks;
  const bool is_whole = ranks % 3 == 0;
  const double gaps[3] = {is_whole ? 3.0 : 1.0, 1, is_whole ? 3.0 : 2.0};
  std::vector<PassOrder> seeds = {
      repeated(problem, one_f_one_b_v_block(ranks, ranks % 3 == 2 ? 2 : 0, gaps))};
  for (const int64_t turn : {0, 1, 2})
    for (const double tip : {1.0, 2.0, 3.0})
      for (const double loss : {1.0, 2.0, 3.0})
        for (const double tip_back : {2.0, 3.0, 4.0})
          seeds.push_back(
              repeated(problem, one_f_one_b_v_block(ranks, turn, {tip, loss, tip_back})));
  return seeds;
}

// What an order takes beyond the work of the busiest rank.
double bubble_of(const PassProblem& problem, const PassOrder& order) {
  return time_of(problem, order, Objective::kMakespan) - lower_bound(problem, Objective::kLongest);
}

// Squeezes the ends of the repeated block within its own memory.
PassOrder squeezed(PassProblem& problem, std::vector<PassOrder> seeds, int64_t effort) {
  if (problem.num_ranks > kMaxRanksSearched) effort = std::min(effort, kBlockEffort);
  problem.memory = peak_of(problem, seeds.front());
  return improved(problem, seeds, Objective::kMakespan,
                  {effort, lower_bound(problem, Objective::kMakespan)});
}

}  // namespace

// The ends are squeezed where they are all there is: with the micro batches that fill and drain the
// pipeline once. More micro batches repeat the steady state between them; among many more passes a
// search would miss what it finds among these.
Schedule one_f_one_b_v(const ScheduleRequest& request) {
  ScheduleRequest core_request = request;
  core_request.num_microbatches = 2 * request.num_ranks;
  PassProblem core(core_request, Placement::kVee, 2, false);
  const PassOrder core_order = squeezed(core, one_f_one_b_v_seeds(core), kEndsEffort);
  PassProblem problem(request, Placement::kVee, 2, false);
  std::vector<PassOrder> seeds = one_f_one_b_v_seeds(problem);
  int64_t effort = kEndsEffort;
  if (std::optional<PassOrder> order = stretched(core, core_order, problem)) {
    const bool is_as_good = bubble_of(problem, *order) <= bubble_of(core, core_order) * (1 + 1e-9);
    if (is_as_good) {
      seeds.resize(1);
      effort = kBlockEffort;
    }
    seeds.push_back(*std::move(order));
  }
  return to_schedule(problem, squeezed(problem, std::move(seeds), effort), "1f1b-v");
}

}  // namespace sevenfold

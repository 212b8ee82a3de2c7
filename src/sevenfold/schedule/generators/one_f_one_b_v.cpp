#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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

// The block repeated, in the form that has the least memory.
PassOrder one_f_one_b_v_seed(const PassProblem& problem) {
  const int64_t ranks = problem.num_ranks;
  const bool is_whole = ranks % 3 == 0;
  const double gaps[3] = {is_whole ? 3.0 : 1.0, 1, is_whole ? 3.0 : 2.0};
  return repeated(problem, one_f_one_b_v_block(ranks, ranks % 3 == 2 ? 2 : 0, gaps));
}

// Behind it all its turns and gaps.
std::vector<PassOrder> one_f_one_b_v_seeds(const PassProblem& problem) {
  std::vector<PassOrder> seeds = {one_f_one_b_v_seed(problem)};
  for (const int64_t turn : {0, 1, 2})
    for (const double tip : {1.0, 2.0, 3.0})
      for (const double loss : {1.0, 2.0, 3.0})
        for (const double tip_back : {2.0, 3.0, 4.0})
          seeds.push_back(repeated(
              problem, one_f_one_b_v_block(problem.num_ranks, turn, {tip, loss, tip_back})));
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

struct Stretched {
  PassOrder order;
  bool is_as_good = false;  // its bubble is that of the order that was stretched
};

// The ends are squeezed where they are all there is: with the micro batches that fill and drain the
// pipeline once. More micro batches repeat the steady state between them; among many more passes a
// search would miss what it finds among these. Nothing for fewer micro batches, of which there may
// be far fewer than of the ends.
std::optional<Stretched> stretched_ends(const ScheduleRequest& request,
                                        const PassProblem& problem) {
  ScheduleRequest ends = request;
  ends.num_microbatches = 2 * request.num_ranks;
  if (request.num_microbatches + 1 < ends.num_microbatches) return std::nullopt;
  PassProblem core(ends, Placement::kVee, 2, false);
  const PassOrder short_order = squeezed(core, one_f_one_b_v_seeds(core), kEndsEffort);
  std::optional<PassOrder> order = stretched(core, short_order, problem);
  if (!order) return std::nullopt;
  const bool is_as_good = bubble_of(problem, *order) <= bubble_of(core, short_order) * (1 + 1e-9);
  return Stretched{*std::move(order), is_as_good};
}

}  // namespace

Schedule one_f_one_b_v(const ScheduleRequest& request) {
  PassProblem problem(request, Placement::kVee, 2, false);
  std::optional<Stretched> ends = stretched_ends(request, problem);
  const bool is_found = ends && ends->is_as_good;
  std::vector<PassOrder> seeds = {one_f_one_b_v_seed(problem)};
  if (!is_found) seeds = one_f_one_b_v_seeds(problem);
  if (ends) seeds.push_back(std::move(ends->order));
  const int64_t effort = is_found ? kBlockEffort : kEndsEffort;
  return to_schedule(problem, squeezed(problem, std::move(seeds), effort), "1f1b-v");
}

}  // namespace sevenfold

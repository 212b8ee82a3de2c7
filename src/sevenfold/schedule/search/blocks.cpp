#include "sevenfold/schedule/search/blocks.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace sevenfold {
namespace {

using Placed = std::pair<double, PassId>;  // slot and pass

// F and B of one rank in the order of their slots.
std::vector<Placed> main_passes(const PassProblem& problem, const VBlock& block, int64_t rank) {
  const VBlock::Slots& slots = block.ranks[static_cast<size_t>(rank)];
  std::vector<Placed> placed;
  for (int64_t m = 0; m < problem.num_microbatches; ++m)
    for (int64_t chunk = 0; chunk < 2; ++chunk) {
      const int64_t stage = stage_of(Placement::kVee, problem.num_ranks, rank, chunk);
      const double shift = block.interval * static_cast<double>(m);
      placed.emplace_back(slots.forward[chunk] + shift, problem.id(Op::kForward, stage, m));
      placed.emplace_back(slots.backward[chunk] + shift, problem.id(Op::kBackwardInput, stage, m));
    }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& left, const Placed& right) {
    return left.first < right.first;
  });
  return placed;
}

// Fills the free slots between them with the Ws of what has run, first in, first out.
std::vector<PassId> with_weights(const PassProblem& problem, const std::vector<Placed>& placed) {
  std::vector<PassId> list;
  std::deque<PassId> pending;
  double next_free = placed.front().first;
  for (const auto& [slot, pass] : placed) {
    for (; !pending.empty() && next_free + 1 <= slot; next_free += 1) {
      list.push_back(pending.front());
      pending.pop_front();
    }
    list.push_back(pass);
    next_free = std::max(next_free, slot) + 1;
    const PassId weight = problem.also_after[static_cast<size_t>(pass)];
    if (weight != kNoPass) pending.push_back(weight);
  }
  list.insert(list.end(), pending.begin(), pending.end());
  return list;
}

}  // namespace

VBlock v_block(int64_t num_ranks, const VOffsets& offsets, double interval) {
  VBlock block;
  block.interval = interval;
  const double span = static_cast<double>(num_ranks - 1);
  const double turn = offsets.forward[0] * span + offsets.gaps[0];
  const double loss = turn + offsets.forward[1] * span + offsets.gaps[1];
  const double back = loss + offsets.backward[1] * span + offsets.gaps[2];
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    const double down = static_cast<double>(rank);
    VBlock::Slots slots;
    slots.forward[0] = offsets.forward[0] * down;
    slots.forward[1] = turn + offsets.forward[1] * (span - down);
    slots.backward[1] = loss + offsets.backward[1] * down;
    slots.backward[0] = back + offsets.backward[0] * (span - down);
    block.ranks.push_back(slots);
  }
  return block;
}

VBlock v_half_block(int64_t num_ranks) {
  const double wait = num_ranks % 2 == 0 ? 4 : 1;
  return v_block(num_ranks, {{2, 1}, {1, 2}, {1, wait, 2}}, 6);
}

VBlock v_min_block(int64_t num_ranks) {
  const double wait = num_ranks % 3 == 0 ? 3 : 1;
  return v_block(num_ranks, {{1, 1}, {1, 1}, {1, wait, 1}}, 6);
}

// Offsets 4 and 2 keep the four passes in residues 0 to 3 of every rank's six slots.
VBlock v_zb_block(int64_t num_ranks) {
  return v_block(num_ranks, {{4, 2}, {2, 4}, {1, 1, 1}}, 6);
}

PassOrder repeated(const PassProblem& problem, const VBlock& block) {
  PassOrder order;
  for (int64_t rank = 0; rank < problem.num_ranks; ++rank)
    order.push_back(with_weights(problem, main_passes(problem, block, rank)));
  return order;
}

}  // namespace sevenfold

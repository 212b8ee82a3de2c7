#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/request.h"

namespace sevenfold {

// A pass as a number: (kind, stage, micro batch), kind 0 being F, 1 B (or BW) and 2 W.
using PassId = int32_t;
constexpr PassId kNoPass = -1;

// For each rank its passes in the order in which it runs them.
using PassOrder = std::vector<std::vector<PassId>>;

// A scheduling problem: passes with durations on ranks, each micro batch a chain
// F(0) .. F(S-1), B(S-1) .. B(0) with a W hanging on each B, and memory that passes take when they
// start and free when they end. Mirrored in time it has the same form: chains run backwards, each W
// before its B, what was taken is freed. An order for one, reversed, is an order for the other.
struct PassProblem {
  PassProblem(const ScheduleRequest& request, Placement placement, int64_t num_chunks,
              bool splits_backward);

  // The same problem with time running backwards.
  PassProblem mirrored() const;

  PassId id(Op op, int64_t stage, int64_t microbatch) const;
  int kind(PassId pass) const {
    return static_cast<int>(pass / static_cast<PassId>(num_stages * num_microbatches));
  }
  Pass pass(PassId id) const;

  Placement placement;
  int64_t num_ranks;
  int64_t num_stages;
  int64_t num_microbatches;
  bool splits_backward;  // else B means BW and there is no W
  double memory;         // most that a rank may hold

  // By pass. `before` is the pass that must have ended `hop` earlier; `also_before` is a second one
  // (mirrored problems: the W of a B), `after` and `also_after` are their inverses.
  std::vector<double> duration;
  std::vector<int32_t> rank;
  std::vector<PassId> before, after, also_before, also_after;
  std::vector<double> hop;
  std::vector<double> taken, freed;  // memory, at start and at end
};

// Micro batch after micro batch, each W right after its B: holds the least memory that any order
// can.
PassOrder sequential_order(const PassProblem& problem);

// Reverses each rank's list: an order of the mirrored problem.
PassOrder reversed(PassOrder order);

// The same order with the passes of each kind and stage numbered in the order in which their rank
// runs them, as passes of `target`: the same problem, maybe with another number of micro batches.
// Micro batches are alike, so an order that finishes still does, and takes no longer.
PassOrder numbered(const PassProblem& problem, const PassOrder& order, const PassProblem& target);

// With its passes so numbered.
Schedule to_schedule(const PassProblem& problem, const PassOrder& order, const char* algorithm);

// The rows of a schedule of this problem (same placement and passes) as an order.
PassOrder to_order(const PassProblem& problem, const Schedule& schedule);

}  // namespace sevenfold

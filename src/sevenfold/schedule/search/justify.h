#pragma once

#include <limits>
#include <vector>

#include "sevenfold/schedule/search/problem.h"

namespace sevenfold {

// What a search makes short.
enum class Objective : uint8_t {
  kMakespan,  // of all ranks
  kLongest,   // last end - first start of the rank that takes longest
};

constexpr double kUnfinished = std::numeric_limits<double>::infinity();

// When each pass ends, every rank running its list as it is from time 0 on; empty if ranks wait for
// each other.
std::vector<double> end_times(const PassProblem& problem, const PassOrder& order);

// The order's time, every rank running its list as it is; kUnfinished if ranks wait for each other.
double time_of(const PassProblem& problem, const PassOrder& order, Objective objective);

// Most memory that a rank holds at once.
double peak_of(const PassProblem& problem, const PassOrder& order);

// How long a rank waits for a pass that its list has earlier before it runs a later one that could
// start now, in durations of the latter.
struct Patience {
  double weight = 0;  // before a W
  double other = 0;   // before an F or B
};

// Moves passes forward in time: each rank, whenever it is free, runs the first pass of its list
// that could start and leaves room for all that it overtakes. The result finishes and keeps within
// problem.memory if `order` does. A rank is free from released[rank] on; an empty `released` means
// from 0.
PassOrder justified(const PassProblem& problem, const PassOrder& order, Patience patience,
                    const std::vector<double>& released = {});

// Forward-backward improvement: justified towards the start and, on the mirrored problem, towards
// the end, in turn while that makes it shorter. Sources: Tormos and Lova 2001 and Valls et al.
// 2005, for resource-constrained project scheduling; here the resource is memory.
// With Objective::kLongest the ends are staggered as the starts are.
struct Justifier {
  explicit Justifier(const PassProblem& problem) : forward(problem), backward(problem.mirrored()) {}

  PassOrder improve(PassOrder order, Patience patience, int max_rounds, Objective objective) const;

  const PassProblem& forward;
  PassProblem backward;

 private:
  // By how much each rank may end earlier than the last one.
  std::vector<double> stagger(Objective objective) const;
};

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <limits>

#include "sevenfold/schedule/costs.h"

namespace sevenfold {

// What a schedule is generated for.
struct ScheduleRequest {
  int64_t num_ranks = 1;         // P
  int64_t num_microbatches = 1;  // M
  int64_t num_chunks = 0;        // v; 0: the algorithm's own
  int64_t group_size = 0;        // interleaved algorithms: micro batches per group; 0: see order.h
  // Algorithms that search look at them; the others make one table for all costs.
  ScheduleCosts costs = {};
  // Most activations that a rank may hold; unit: PassCosts::activation.
  double max_memory = std::numeric_limits<double>::infinity();

  // Whether the optimizer waits for all ranks: then a short schedule has a short makespan, else a
  // short longest rank (simulate.h).
  bool has_barrier = true;

  bool has_memory_limit() const { return max_memory < std::numeric_limits<double>::infinity(); }
};

}  // namespace sevenfold

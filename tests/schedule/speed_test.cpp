#include <gtest/gtest.h>

#include <chrono>

#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

// Generates (which validates) and simulates; in seconds. The bounds leave room for a busy machine.
double seconds_of(const char* algorithm, int64_t ranks, int64_t microbatches, int64_t chunks,
                  double limit) {
  ScheduleRequest request;
  request.num_ranks = ranks;
  request.num_microbatches = microbatches;
  request.num_chunks = chunks;
  request.max_memory = limit;
  const auto begin = std::chrono::steady_clock::now();
  simulate(generate(algorithm, request), request.costs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Speed, Of64RanksAnd512Microbatches) {
  EXPECT_LT(seconds_of("1f1b-interleaved", 64, 512, 2, 1e9), 5);
  EXPECT_LT(seconds_of("zb-interleaved", 64, 512, 2, 1e9), 5);
  EXPECT_LT(seconds_of("zbv-formatted", 64, 512, 2, 1e9), 5);
}

TEST(Speed, OfTheZeroBubbleHeuristic) {
  EXPECT_LT(seconds_of("zero-bubble-heuristic", 32, 256, 1, 64), 15);
}

}  // namespace
}  // namespace sevenfold

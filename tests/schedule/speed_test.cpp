#include <gtest/gtest.h>

#include <ctime>

#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

// Generates (which validates) and simulates; in seconds of processor time, which do not depend on
// what else the machine does.
double seconds_of(const char* algorithm, int64_t ranks, int64_t microbatches, int64_t chunks,
                  double limit) {
  ScheduleRequest request;
  request.num_ranks = ranks;
  request.num_microbatches = microbatches;
  request.num_chunks = chunks;
  request.max_memory = limit;
  const std::clock_t begin = std::clock();
  simulate(generate(algorithm, request), request.costs);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// An unoptimized or instrumented program gets more time.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double kSlower = 1;
#else
constexpr double kSlower = 30;
#endif

TEST(Speed, Of64RanksAnd512MicrobatchesInTwoChunks) {
  for (const char* algorithm :
       {"1f1b-interleaved", "zb-interleaved", "looped-bfs", "zbv-formatted", "zbv-heuristic",
        "v-half", "v-min", "v-zb", "v-adaptive", "dualpipev"})
    EXPECT_LT(seconds_of(algorithm, 64, 512, 2, 1e9), 1 * kSlower) << algorithm;
}

// Its ends are those of 2P micro batches, which are not looked at for far fewer.
TEST(Speed, Of1F1BInAV) {
  EXPECT_LT(seconds_of("1f1b-v", 64, 512, 2, 1e9), 5 * kSlower);
  EXPECT_LT(seconds_of("1f1b-v", 512, 4, 2, 1e9), 5 * kSlower);
}

TEST(Speed, OfTheZeroBubbleHeuristic) {
  for (const double limit : {32.0, 64.0, 1e9})
    EXPECT_LT(seconds_of("zero-bubble-heuristic", 32, 256, 1, limit), 3 * kSlower) << limit;
}

}  // namespace
}  // namespace sevenfold

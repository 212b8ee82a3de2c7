// Needs a machine that is not busy: the bubbles that are measured are those that are simulated.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/sleeping_stages.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

class BubbleRate : public ::testing::TestWithParam<const char*> {};

// Four ranks, 16 micro batches, passes of 2 ms; the best of three runs, as anything that disturbs
// only adds to it.
TEST_P(BubbleRate, IsTheSimulatedOne) {
  const Schedule schedule = generate(GetParam(), {.num_ranks = 4, .num_microbatches = 16});
  const double simulated = simulate(schedule, {}).bubble_rate();
  double measured = 1.0;
  for (int run = 0; run < 3; ++run)
    measured = std::min(
        measured, testing::run_sleeping(schedule, std::chrono::milliseconds(2)).bubble_rate());
  fmt::print("{:24} simulated {:6.2f}%  measured {:6.2f}%\n", GetParam(), 100 * simulated,
             100 * measured);
  EXPECT_NEAR(measured, simulated, 0.03);
}

std::vector<const char*> names() {
  std::vector<const char*> result;
  for (const Algorithm& algorithm : algorithms())
    if (!algorithm.chooses) result.push_back(algorithm.name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Every, BubbleRate, ::testing::ValuesIn(names()), [](const auto& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace sevenfold

// Forwards that run before the weights are certain: kept, or thrown away and run again.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "pipeline/sleeping_stages.h"
#include "sevenfold/schedule/algorithms.h"

namespace sevenfold {
namespace {

using testing::Nap;
using testing::run_sleeping;
using testing::SleepingRun;

std::map<std::string, int> passes_by_name(const std::vector<TimeSpan>& spans) {
  std::map<std::string, int> passes;
  for (const TimeSpan& span : spans)
    if (span.name.starts_with("forward") || span.name.starts_with("backward")) ++passes[span.name];
  return passes;
}

int64_t count_ahead(const StepTable& table, size_t rank) {
  const auto first = table.actions[rank].begin();
  return std::count_if(first, first + static_cast<int64_t>(table.ahead[rank].num_actions),
                       [](const Action& action) { return action.kind == Action::Kind::kCompute; });
}

// The stages check the values that reach them, so a message that meets another's receive shows.
// Also where sends block until they are received.
TEST(RunAhead, RunsAgainOnlyWhatRanAhead) {
  for (const Algorithm& algorithm : algorithms())
    for (const int64_t microbatches : {int64_t{3}, int64_t{8}}) {
      if (algorithm.chooses) continue;
      const auto schedule =
          try_generate(algorithm, {.num_ranks = 4, .num_microbatches = microbatches});
      if (!schedule) continue;
      const StepTable table(*schedule);
      for (const bool sends_block : {false, true}) {
        const SleepingRun kept =
            run_sleeping(*schedule, Nap(0), sends_block, {}, [] { return true; });
        const SleepingRun again =
            run_sleeping(*schedule, Nap(0), sends_block, {}, [] { return false; });
        for (size_t rank = 0; rank < 4; ++rank) {
          const auto once = passes_by_name(kept.spans[rank]);
          const auto twice = passes_by_name(again.spans[rank]);
          int64_t repeated = 0;
          for (const auto& [name, count] : twice) {
            EXPECT_EQ(once.at(name), 1) << algorithm.name << " " << name;
            if (count == 1) continue;
            EXPECT_EQ(count, 2) << algorithm.name << " " << name;
            EXPECT_TRUE(name.starts_with("forward")) << algorithm.name << " " << name;
            ++repeated;
          }
          EXPECT_EQ(repeated, count_ahead(table, rank)) << algorithm.name << " rank " << rank;
          EXPECT_EQ(once.size(), twice.size());
          EXPECT_EQ(kept.executions[rank].peak_activation, again.executions[rank].peak_activation);
        }
      }
    }
}

}  // namespace
}  // namespace sevenfold

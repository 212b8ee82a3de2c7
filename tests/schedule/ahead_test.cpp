#include "sevenfold/schedule/ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/validate.h"

namespace sevenfold {
namespace {

using Rows = std::vector<size_t>;

size_t rows_of(const std::vector<Action>& actions, size_t num_actions) {
  return static_cast<size_t>(
      std::count_if(actions.begin(), actions.begin() + static_cast<int64_t>(num_actions),
                    [](const Action& action) { return action.kind == Action::Kind::kCompute; }));
}

Rows rows_ahead(const std::string& algorithm, int64_t num_ranks, int64_t num_microbatches) {
  const Schedule schedule =
      generate(algorithm, {.num_ranks = num_ranks, .num_microbatches = num_microbatches});
  const auto actions = actions_of(schedule);
  Rows rows;
  for (const RunAhead& ahead : runs_ahead(schedule, actions))
    rows.push_back(rows_of(actions[rows.size()], ahead.num_actions));
  return rows;
}

// The warm-up and the forward that the first backward waits for.
TEST(RunAhead, IsTheForwardsBeforeTheFirstBackward) {
  EXPECT_EQ(rows_ahead("gpipe", 4, 5), (Rows{5, 5, 5, 5}));
  EXPECT_EQ(rows_ahead("1f1b", 4, 8), (Rows{4, 3, 2, 1}));
  EXPECT_EQ(rows_ahead("1f1b", 4, 2), (Rows{2, 2, 2, 1}));
  EXPECT_EQ(rows_ahead("zb-h2", 4, 8), (Rows{7, 5, 3, 1}));
  EXPECT_EQ(rows_ahead("zbv-formatted", 4, 8), (Rows{8, 8, 8, 8}));
}

// Rank 0's third chunk-wise forward reads what rank 1 computes after its first backward.
TEST(RunAhead, EndsWhereItsInputWouldHaveToWait) {
  const auto row = [](Op op, int64_t stage, int64_t microbatch) {
    return Row{.op = op, .stage = stage, .chunk = stage / 2, .microbatch = microbatch};
  };
  constexpr Op F = Op::kForward, B = Op::kBackward;
  Schedule schedule{.num_stages = 4, .num_microbatches = 2, .placement = Placement::kLoop};
  schedule.rows = {{row(F, 0, 0), row(F, 0, 1), row(F, 2, 0), row(F, 2, 1), row(B, 2, 0),
                    row(B, 2, 1), row(B, 0, 0), row(B, 0, 1)},
                   {row(F, 1, 0), row(F, 3, 0), row(B, 3, 0), row(F, 1, 1), row(F, 3, 1),
                    row(B, 3, 1), row(B, 1, 0), row(B, 1, 1)}};
  ASSERT_EQ(find_fault(schedule), std::nullopt);
  const auto actions = actions_of(schedule);
  const auto ahead = runs_ahead(schedule, actions);
  EXPECT_EQ(rows_of(actions[0], ahead[0].num_actions), 3U);
  EXPECT_EQ(rows_of(actions[1], ahead[1].num_actions), 2U);
}

using Place = std::tuple<int64_t, int64_t>;  // stage and micro batch

// Of every schedule: what runs ahead is forwards whose inputs run ahead, nothing that could is left
// out, and with what is missing at either end all links have carried equal numbers.
void check(const Schedule& schedule, bool& has_uneven_links) {
  const auto actions = actions_of(schedule);
  const auto ahead = runs_ahead(schedule, actions);
  std::set<Place> runs;
  std::vector<size_t> num_rows;
  for (size_t rank = 0; rank < actions.size(); ++rank) {
    num_rows.push_back(rows_of(actions[rank], ahead[rank].num_actions));
    for (size_t at = 0; at < num_rows.back(); ++at) {
      ASSERT_EQ(schedule.rows[rank][at].op, Op::kForward);
      runs.insert({schedule.rows[rank][at].stage, schedule.rows[rank][at].microbatch});
    }
  }
  const auto can_run = [&](const Row& row) {
    return row.op == Op::kForward &&
           (row.stage == 0 || runs.count({row.stage - 1, row.microbatch}) > 0);
  };
  std::vector<std::vector<int64_t>> balance(actions.size(),
                                            std::vector<int64_t>(actions.size(), 0));
  for (size_t rank = 0; rank < actions.size(); ++rank) {
    for (size_t at = 0; at < num_rows[rank]; ++at) EXPECT_TRUE(can_run(schedule.rows[rank][at]));
    if (num_rows[rank] < schedule.rows[rank].size()) {
      EXPECT_FALSE(can_run(schedule.rows[rank][num_rows[rank]]));
    }
    for (size_t at = 0; at < ahead[rank].num_actions; ++at) {
      const auto peer = static_cast<size_t>(actions[rank][at].peer);
      if (actions[rank][at].kind == Action::Kind::kSend) ++balance[rank][peer];
      if (actions[rank][at].kind == Action::Kind::kReceive) --balance[peer][rank];
    }
    for (size_t peer = 0; peer < actions.size(); ++peer) {
      balance[rank][peer] += ahead[rank].unsent[peer];
      balance[peer][rank] -= ahead[rank].unreceived[peer];
      has_uneven_links |= ahead[rank].unsent[peer] + ahead[rank].unreceived[peer] > 0;
    }
  }
  for (const auto& links : balance)
    for (const int64_t rest : links) EXPECT_EQ(rest, 0);
}

TEST(RunAhead, HoldsForEverySchedule) {
  bool has_uneven_links = false;
  for (const Algorithm& algorithm : algorithms())
    for (const int64_t num_ranks : {2, 3, 4})
      for (const int64_t num_microbatches : {int64_t{1}, int64_t{3}, 2 * num_ranks, int64_t{13}}) {
        const auto schedule =
            try_generate(algorithm, {.num_ranks = num_ranks, .num_microbatches = num_microbatches});
        if (!schedule) continue;
        SCOPED_TRACE(algorithm.name + std::string(" ") + std::to_string(num_ranks) + " " +
                     std::to_string(num_microbatches));
        check(*schedule, has_uneven_links);
      }
  EXPECT_TRUE(has_uneven_links) << "no schedule has a message of which one end alone knows";
}

}  // namespace
}  // namespace sevenfold

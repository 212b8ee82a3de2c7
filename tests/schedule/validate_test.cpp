#include "sevenfold/schedule/validate.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/communication.h"
#include "sevenfold/schedule/generators/one_f_one_b.h"

namespace sevenfold {
namespace {

using testing::HasSubstr;

Schedule made(const char* algorithm, int64_t ranks, int64_t microbatches) {
  ScheduleRequest request;
  request.num_ranks = ranks;
  request.num_microbatches = microbatches;
  return generate(algorithm, request);
}

std::string fault_of(const Schedule& schedule) {
  return find_fault(schedule).value_or("none");
}

// The first row of this kind on a rank.
std::vector<Row>::iterator first_of(std::vector<Row>& rows, Op op) {
  return std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.op == op; });
}

TEST(FindFault, FindsNothingInAGoodSchedule) {
  EXPECT_EQ(fault_of(made("zb-h1", 4, 8)), "none");
}

TEST(FindFault, NamesADroppedW) {
  Schedule schedule = made("zb-h1", 4, 8);
  std::vector<Row>& rows = schedule.rows[1];
  rows.erase(first_of(rows, Op::kBackwardWeight));
  EXPECT_EQ(fault_of(schedule), "W of stage 1 and micro batch 0 is nowhere");
}

TEST(FindFault, NamesAWBeforeItsB) {
  Schedule schedule = made("zb-h1", 4, 8);
  std::vector<Row>& rows = schedule.rows[2];
  std::swap(*first_of(rows, Op::kBackwardWeight), *first_of(rows, Op::kBackwardInput));
  EXPECT_THAT(fault_of(schedule), HasSubstr("W of stage 2 and micro batch 0: its B has not run"));
}

TEST(FindFault, NamesABackwardBeforeItsForward) {
  Schedule schedule = one_f_one_b(2, 2);
  std::swap(schedule.rows[1][0], schedule.rows[1][1]);
  EXPECT_EQ(fault_of(schedule),
            "rank 1, row 0: BW of stage 1 and micro batch 0: its F has not run");
}

TEST(FindFault, NamesARowThatComesTwice) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.rows[0].push_back(schedule.rows[0].back());
  EXPECT_THAT(fault_of(schedule), HasSubstr("its backward ran before"));
}

// What Primus's 1F1B makes of 2 micro batches on 4 ranks: no clip of the warm-up.
TEST(FindFault, NamesMicroBatchesThatDoNotExist) {
  Schedule schedule = one_f_one_b(4, 3);
  schedule.num_microbatches = 2;
  EXPECT_EQ(fault_of(schedule),
            "rank 0, row 2: F of stage 0 and micro batch 2: there are 2 micro batches");
}

TEST(FindFault, NamesAStageOnTheWrongRank) {
  Schedule schedule = made("zbv-formatted", 4, 8);
  schedule.placement = Placement::kLoop;
  EXPECT_THAT(fault_of(schedule), HasSubstr("of rank"));
}

TEST(FindFault, NamesTheWrongFlow) {
  Schedule schedule = made("dualpipe", 4, 8);
  schedule.rows[0][0].flow = 1;
  EXPECT_THAT(fault_of(schedule), HasSubstr("the micro batch belongs to flow 0"));
}

TEST(FindFault, TellsRanksThatWaitForEachOther) {
  Schedule schedule = one_f_one_b(2, 2);
  // Rank 1 wants micro batch 1 first, rank 0 sends it only after micro batch 0 has come back.
  schedule.rows[0] = one_f_one_b(1, 2).rows[0];
  std::swap(schedule.rows[1][0], schedule.rows[1][2]);
  std::swap(schedule.rows[1][1], schedule.rows[1][3]);
  EXPECT_EQ(
      fault_of(schedule),
      "ranks wait for each other: rank 0 before BW of stage 0 and micro batch 0 for BW of "
      "stage 1 and micro batch 0; rank 1 before F of stage 1 and micro batch 1 for F of stage 0 "
      "and micro batch 1");
}

TEST(FindExcess, ComparesThePeakWithTheLimit) {
  const Schedule schedule = one_f_one_b(4, 8);
  EXPECT_FALSE(find_excess(schedule, {}, 4));
  EXPECT_EQ(find_excess(schedule, {}, 3.5).value_or(""),
            "rank 0 holds 4 activations at once, the limit is 3.5");
}

// Each rank sends what it has made before it looks for what has come: both block.
TEST(FindDeadlock, TellsSendsThatFaceEachOther) {
  const Schedule schedule = one_f_one_b(2, 2);
  std::vector<std::vector<Action>> actions = actions_of(schedule);
  EXPECT_FALSE(find_deadlock(schedule, actions));
  const auto move_to_end = [](std::vector<Action>& list, bool gradient) {
    const auto receive = std::find_if(list.begin(), list.end(), [&](const Action& action) {
      return action.kind == Action::Kind::kReceive && action.transfer.is_gradient == gradient &&
             action.transfer.microbatch == (gradient ? 0 : 1);
    });
    std::rotate(receive, receive + 1, list.end());
  };
  move_to_end(actions[0], true);
  move_to_end(actions[1], false);
  const std::string text = find_deadlock(schedule, actions).value_or("");
  EXPECT_THAT(text,
              HasSubstr("rank 0 waits to send the activation of micro batch 1 from stage 0 to "
                        "stage 1 to rank 1"));
  EXPECT_THAT(text, HasSubstr("rank 1 waits to send the gradient of micro batch 0"));
}

TEST(ActionsOf, ReceiveEachTransferBeforeTheRowThatNeedsIt) {
  const Schedule schedule = made("zbv-formatted", 4, 8);
  const auto actions = actions_of(schedule);
  size_t transfers = 0;
  for (size_t rank = 0; rank < actions.size(); ++rank) {
    std::vector<Transfer> received;
    for (const Action& action : actions[rank]) {
      if (action.kind == Action::Kind::kReceive) received.push_back(action.transfer);
      if (action.kind != Action::Kind::kCompute) continue;
      const Row& row = schedule.rows[rank][action.position];
      if (row.op == Op::kBackwardWeight) continue;
      const bool gradient = row.op != Op::kForward;
      const int64_t source = row.stage + (gradient ? 1 : -1);
      const bool is_outer = source < 0 || source == schedule.num_stages;
      if (is_outer || site_of(schedule.placement, 4, source, 0).rank == static_cast<int64_t>(rank))
        continue;
      ++transfers;
      EXPECT_TRUE(std::any_of(received.begin(), received.end(), [&](const Transfer& one) {
        return one.is_gradient == gradient && one.to_stage == row.stage &&
               one.microbatch == row.microbatch;
      })) << describe(row);
    }
  }
  EXPECT_EQ(transfers, 2u * 8u * 6u);  // both ways, micro batches, hops between ranks of 8 stages
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/schedule/ir.h"

#include <gtest/gtest.h>

#include <string>

#include "sevenfold/schedule/generators/one_f_one_b.h"

namespace sevenfold {
namespace {

std::string text(const std::vector<Row>& rows) {
  std::string result;
  for (const Row& row : rows)
    result += (result.empty() ? "" : " ") + std::string(row.op == Op::kForward ? "F" : "B") +
              std::to_string(row.microbatch);
  return result;
}

TEST(OneFOneB, OfOneStageKeepsOneMicrobatchAlive) {
  EXPECT_EQ(text(one_f_one_b(1, 3).rows[0]), "F0 B0 F1 B1 F2 B2");
}

TEST(OneFOneB, OfFourStagesAndTwoMicrobatchesIsThatOfTheField) {
  const Schedule schedule = one_f_one_b(4, 2);
  for (const size_t rank : {0, 1, 2}) EXPECT_EQ(text(schedule.rows[rank]), "F0 F1 B0 B1") << rank;
  EXPECT_EQ(text(schedule.rows[3]), "F0 B0 F1 B1");
}

TEST(OneFOneB, OfTwoStagesWarmsUpWithOneForward) {
  EXPECT_EQ(text(one_f_one_b(2, 4).rows[0]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text(one_f_one_b(2, 4).rows[1]), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(CompletesGradients, IsTheLastRowThatAddsToAChunkWhateverItsMicrobatch) {
  // A schedule that runs micro batch 1 last in chunk 0 and 0 last in chunk 1, with a W after its B.
  const std::vector<Row> rows = {{.op = Op::kForward, .chunk = 0, .microbatch = 0},
                                 {.op = Op::kBackward, .chunk = 1, .microbatch = 1},
                                 {.op = Op::kBackwardInput, .chunk = 0, .microbatch = 1},
                                 {.op = Op::kBackward, .chunk = 1, .microbatch = 0},
                                 {.op = Op::kBackward, .chunk = 0, .microbatch = 0},
                                 {.op = Op::kBackwardWeight, .chunk = 0, .microbatch = 1}};
  const std::vector<bool> expected = {false, false, false, true, false, true};
  for (size_t at = 0; at < rows.size(); ++at)
    EXPECT_EQ(completes_gradients(rows, at), expected[at]) << at;
}

TEST(CompletesGradients, OfAnOverlappedCellIsAboutTheChunkThatItRunsBackward) {
  const std::vector<Row> rows = {
      {.op = Op::kForwardBackward, .chunk = 0, .microbatch = 1, .backward = {.chunk = 1}},
      {.op = Op::kBackward, .chunk = 0}};
  EXPECT_TRUE(completes_gradients(rows, 0));
  EXPECT_TRUE(completes_gradients(rows, 1));
}

TEST(SiteOf, IsTheInverseOfStageOf) {
  for (const Placement placement :
       {Placement::kLinear, Placement::kLoop, Placement::kVee, Placement::kBidirectional})
    for (int64_t rank = 0; rank < 4; ++rank)
      for (int64_t chunk = 0; chunk < (placement == Placement::kLinear ? 1 : 2); ++chunk) {
        const int64_t stage = stage_of(placement, 4, rank, chunk);
        const int64_t flow = placement == Placement::kBidirectional ? chunk : 0;
        EXPECT_EQ(site_of(placement, 4, stage, flow).rank, rank) << placement_name(placement);
        EXPECT_EQ(site_of(placement, 4, stage, flow).chunk, chunk) << placement_name(placement);
      }
}

}  // namespace
}  // namespace sevenfold

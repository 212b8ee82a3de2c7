#include "sevenfold/schedule/csv.h"

#include <gmock/gmock.h>

#include <sstream>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

using testing::HasSubstr;

Schedule read(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "table.csv");
}

std::string written(const Schedule& schedule) {
  std::ostringstream out;
  write_csv(out, schedule);
  return out.str();
}

TEST(Csv, OfEveryAlgorithmWithOneCopyOfTheWeightsReadsBackAsItWas) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.chooses || algorithm.placement == Placement::kBidirectional) continue;
    ScheduleRequest request;
    request.num_ranks = 3;
    request.num_microbatches = 7;
    const Schedule schedule = without_fused_rows(generate(algorithm.name, request));
    const Schedule again = read(written(schedule));
    EXPECT_EQ(again.placement, schedule.placement) << algorithm.name;
    EXPECT_EQ(again.num_chunks(), schedule.num_chunks()) << algorithm.name;
    EXPECT_EQ(written(again), written(schedule)) << algorithm.name;
    EXPECT_EQ(simulate(again, {}).makespan, simulate(schedule, {}).makespan) << algorithm.name;
  }
}

// As PyTorch writes it: its own additions, padding, quotes of the csv module, lines of DOS.
TEST(Csv, ReadsWhatPyTorchAdds) {
  const std::string plain = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(written(read("0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0,0RECV_B1,0B1,"
                         "0REDUCE_GRAD,0RESHARD\r\n1RECV_F0,1F0,1B0,1SEND_B0,None,\"1F1\", 1B1 ")),
            plain);
  EXPECT_EQ(written(read(plain + "\n\n")), plain);
}

TEST(Csv, ReadsOverlappedCells) {
  const Schedule schedule = read("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  ASSERT_EQ(schedule.rows[0].size(), 3u);
  EXPECT_EQ(describe(schedule.rows[0][1]),
            "F of stage 0 and micro batch 1 with BW of stage 0 and micro batch 0");
  EXPECT_EQ(written(schedule), "0F0,0F1,0B0,0B1\n");
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      read(text);
    } catch (const DataError& caught) {
      return caught.what();
    }
    return "none";
  };
  EXPECT_EQ(error("\n \n"), "schedule: table.csv: holds no rows");
  const char* is_no_pass = "' is no pass; write stage, F, B, I or W, and micro batch: 3F7";
  for (const char* cell : {"x", "0f0", "0X0", "-1F0", "0F-1", "0F", "F0", "0F0 0B0", "0F0;0B0",
                           "0F99999999999999999999", "0SEND_Fx", "0UNSHARDED",
                           "(0F0;0F0)OVERLAP_F_B", "(0F1;0B0)", "(0F1;0B0"})
    EXPECT_EQ(error(std::string("0F0,0B0\n\n1F0,") + cell + "\n"),
              std::string("schedule: table.csv: line 3, cell 2: '") + cell + is_no_pass);
  EXPECT_THAT(error(std::string("0F0,\x1b[31m") + std::string(50, 'y')),
              HasSubstr("cell 2: '?[31m" + std::string(35, 'y') + "...' is no pass"));
  EXPECT_THAT(error("0F0,0I0\n"),
              HasSubstr("table.csv: W of stage 0 and micro batch 0 is nowhere"));
  EXPECT_THAT(error("1F0,1B0\n0F0,0B0\n"), HasSubstr("2 stages on 2 ranks lie neither"));
  EXPECT_THAT(error("0F0,0B0,999999F999999\n"),
              HasSubstr("3 passes cannot run 1000000 micro batches through 1000000 stages"));
  EXPECT_THAT(error("0F0,0F1,0B1,0B0\n1F1,1B1,1F0,1B0\n1F0\n"), HasSubstr("lie neither"));
  EXPECT_THAT(error("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"), HasSubstr("ranks wait for each other"));
}

TEST(Csv, CannotSayWhichOfAStagesTwoRanksIsMeant) {
  ScheduleRequest request;
  request.num_ranks = 2;
  request.num_microbatches = 4;
  EXPECT_THROW(written(generate("dualpipe", request)), ConfigError);
}

}  // namespace
}  // namespace sevenfold

// Which keys select which schedule, with its costs and limits.

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "config/experiment_files.h"
#include "sevenfold/config/run_schedule.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/csv.h"

namespace sevenfold {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const std::string kPp2 = "pipeline_model_parallel_size=2";
const std::string kTwoPieces = "num_virtual_stages_per_pipeline_rank=2";
const std::string kPrimus = "patch_primus_pipeline=true";
const std::string kZeroBubble = "patch_zero_bubble=true";

Config load(Words words) {
  words.push_back(kPp2);
  return load_text(small_llama(), std::move(words));
}

PipelineConfig pipeline_of(Words words) {
  return load(std::move(words)).pipeline;
}

TEST(PipelineSchedule, IsMegatronsOwnWithoutOtherKeys) {
  EXPECT_EQ(pipeline_of({}).algorithm, "1f1b");
  EXPECT_EQ(pipeline_of({kTwoPieces}).algorithm, "1f1b-interleaved");
  EXPECT_EQ(pipeline_of({"pp_algorithm=v-half"}).algorithm, "1f1b")
      << "read only with patch_primus_pipeline";
  EXPECT_TRUE(std::isinf(pipeline_of({}).max_memory));
  EXPECT_TRUE(pipeline_of({"pp_cost_f=3"}).forward.empty());
}

TEST(PipelineSchedule, IsTheOneThatPrimusNames) {
  for (const char* name : {"1f1b", "zero-bubble-heuristic", "zb-h2", "gpipe"})
    EXPECT_EQ(pipeline_of({kPrimus, std::string("pp_algorithm=") + name}).algorithm, name);
  EXPECT_EQ(pipeline_of({kPrimus, "pp_algorithm=zero-bubble"}).algorithm, "zb-h1");
  for (const char* name : {"1f1b-interleaved", "zbv-formatted", "v-half", "v-min"})
    EXPECT_EQ(pipeline_of({kPrimus, kTwoPieces, std::string("pp_algorithm=") + name}).algorithm,
              name);
  // TorchTitan's and PyTorch's names.
  EXPECT_EQ(pipeline_of({kPrimus, kTwoPieces, "pp_algorithm=ZBVZeroBubble"}).algorithm,
            "zbv-formatted");
  EXPECT_EQ(
      pipeline_of({kPrimus, kTwoPieces, "pp_algorithm=ScheduleInterleavedZeroBubble"}).algorithm,
      "zb-interleaved");
}

TEST(PipelineSchedule, IsTheZeroBubbleRuntimesBeforePrimuss) {
  const auto of = [](Words words) {
    words.insert(words.end(), {kZeroBubble, kPrimus, "pp_algorithm=1f1b"});
    return pipeline_of(std::move(words));
  };
  EXPECT_EQ(of({}).algorithm, "zero-bubble-heuristic");
  EXPECT_EQ(of({kTwoPieces}).algorithm, "zb-interleaved");
  EXPECT_EQ(of({"enable_zero_bubble=false"}).algorithm, "1f1b");
  EXPECT_EQ(of({"enable_zero_bubble=false", kTwoPieces}).algorithm, "1f1b-interleaved");
  const std::pair<const char*, const char*> setups[] = {
      {"half", "v-half"}, {"min", "v-min"}, {"zb", "v-zb"}};
  for (const auto& [setup, name] : setups)
    for (const Words& pieces : {Words{}, Words{kTwoPieces}}) {
      Words words = {"zero_bubble_v_schedule=true",
                     std::string("zero_bubble_v_schedule_mem_setup=") + setup};
      words.insert(words.end(), pieces.begin(), pieces.end());
      EXPECT_EQ(of(words).algorithm, name);
      EXPECT_EQ(of(words).num_chunks, 2) << "set by the schedule itself or by the user";
      EXPECT_EQ(of(words).stages.size(), 4u);
    }
  EXPECT_EQ(of({"enable_1f1b_v=true"}).algorithm, "1f1b-v");
  EXPECT_THAT(rule_of(small_llama(),
                      {kPp2, kZeroBubble, "enable_1f1b_v=true", "zero_bubble_v_schedule=true"}),
              StartsWith("schedule.one config: override enable_1f1b_v=true: override "
                         "zero_bubble_v_schedule=true is set too"));
}

TEST(PipelineSchedule, KeepsAsManyMicroBatchesAsTheRuntimeMay) {
  EXPECT_EQ(pipeline_of({kZeroBubble, "zero_bubble_max_pending_backward=4"}).max_memory, 4.0);
  EXPECT_EQ(pipeline_of({kZeroBubble}).max_memory, 2.0) << "auto: ZB-1p";
  EXPECT_THAT(load({kZeroBubble}).notices,
              Contains(Field(&Notice::text,
                             HasSubstr("zero_bubble_max_pending_backward=auto: taken as 2"))));
  EXPECT_TRUE(std::isinf(pipeline_of({"zero_bubble_max_pending_backward=4"}).max_memory));
}

// Without a barrier what counts is the rank that takes longest.
TEST(PipelineSchedule, StepsWithoutABarrierOnlyWhereAsked) {
  EXPECT_FALSE(pipeline_of({}).post_validation);
  EXPECT_TRUE(pipeline_of({"enable_optimizer_post_validation=true"}).post_validation);
  EXPECT_TRUE(schedule_request(load({}), 4).has_barrier);
  EXPECT_FALSE(schedule_request(load({"enable_optimizer_post_validation=true"}), 4).has_barrier);
}

TEST(PipelineSchedule, TakesCostsAndMemoryOfPrimus) {
  const Words heuristic = {kPrimus, "pp_algorithm=zero-bubble-heuristic"};
  const auto with = [&](Words words) {
    words.insert(words.end(), heuristic.begin(), heuristic.end());
    return pipeline_of(std::move(words));
  };
  EXPECT_TRUE(with({}).forward.empty());
  const PipelineConfig pipeline =
      with({"pp_cost_f=[900, 1100.5]", "pp_cost_w=500", "pp_max_mem=3"});
  EXPECT_EQ(pipeline.forward, (std::vector<double>{900, 1100.5}));
  EXPECT_EQ(pipeline.backward_input, (std::vector<double>{1000, 1000})) << "Primus's own";
  EXPECT_EQ(pipeline.backward_weight, (std::vector<double>{500, 500}));
  EXPECT_EQ(pipeline.max_memory, 3.0);
  EXPECT_EQ(with({"pp_max_mem=2.5"}).max_memory, 2.5);
}

TEST(PipelineSchedule, TakesGroupsOfInterleavedMicroBatches) {
  EXPECT_EQ(pipeline_of({kTwoPieces}).group_size, 0);
  EXPECT_EQ(pipeline_of({kTwoPieces, "microbatch_group_size_per_vp_stage=4"}).group_size, 4);
  EXPECT_EQ(pipeline_of({"microbatch_group_size_per_vp_stage=4"}).group_size, 0);
}

TEST(PipelineSchedule, IsTheOneOfTheBlockBeforeAll) {
  const auto of = [](const std::string& name, Words words) {
    words.insert(words.end(), {kZeroBubble, "sevenfold.schedule=" + name});
    return pipeline_of(std::move(words));
  };
  for (const Algorithm& algorithm : algorithms()) {
    const PipelineConfig pipeline = of(algorithm.name, {});
    EXPECT_EQ(pipeline.algorithm, algorithm.name);
    const int64_t chunks = std::max<int64_t>(1, algorithm.default_chunks);
    EXPECT_EQ(pipeline.num_chunks, chunks) << algorithm.name;
    EXPECT_EQ(pipeline.stages.size(), algorithm.placement == Placement::kBidirectional
                                          ? 2u
                                          : static_cast<size_t>(2 * chunks));
  }
  EXPECT_EQ(of("zb-interleaved", {"num_virtual_stages_per_pipeline_rank=1"}).num_chunks, 1);
  EXPECT_EQ(of("v-adaptive", {"pp_max_mem=1.5"}).max_memory, 1.5);
  EXPECT_EQ(
      rule_of(small_llama("", "sevenfold: {schedule: zbv-formated}\n"), {kPp2}).substr(0, 110),
      "schedule.name config: run.yaml:33 sevenfold.schedule=zbv-formated: no schedule is called "
      "so; use zbv-formatted");
  EXPECT_THAT(rule_of(small_llama(), {kPp2, "num_layers=6", "sevenfold.schedule=v-half"}),
              AllOf(StartsWith("pipeline.chunks_divide config: override "
                               "pipeline_model_parallel_size=2: num_layers=6 do not go into 2"),
                    HasSubstr("use num_layers=4 or 8")));
}

TEST(PipelineSchedule, IsReadFromATable) {
  const ExperimentFiles files;
  std::ostringstream text;
  write_csv(text, generate("v-half", {.num_ranks = 2, .num_microbatches = 8}));
  const std::string word = "sevenfold.schedule_file=" + files.write("table.csv", text.str());
  const PipelineConfig pipeline = pipeline_of({word});
  EXPECT_EQ(pipeline.schedule_file, files.path("table.csv"));
  EXPECT_EQ(pipeline.num_chunks, 2);
  EXPECT_EQ(pipeline.stages.size(), 4u);
  EXPECT_THAT(rule_of(small_llama(), {kPp2, word, "global_batch_size=9"}),
              AllOf(StartsWith("schedule.file "),
                    HasSubstr("its steps have 8 micro batches, and those of the run 9; use "
                              "global_batch_size=8")));
  EXPECT_THAT(rule_of(small_llama(), {"pipeline_model_parallel_size=4", word}),
              HasSubstr("it is for 2 ranks with 2 pieces each, and there are 4 with 2; use"));
  EXPECT_THAT(rule_of(small_llama(), {kPp2, word, "num_virtual_stages_per_pipeline_rank=1"}),
              HasSubstr("it is for 2 ranks with 2 pieces each, and there are 2 with 1; use"));
  EXPECT_THAT(rule_of(small_llama(), {kPp2, "sevenfold.schedule_file=no_such.csv"}),
              HasSubstr("sevenfold.schedule_file=no_such.csv: it cannot be read; set the path"));
  EXPECT_THAT(rule_of(small_llama(), {kPp2, word, "sevenfold.schedule=1f1b"}),
              StartsWith("schedule.one "));
}

}  // namespace
}  // namespace sevenfold

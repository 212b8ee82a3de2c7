// The executor runs every schedule as its table says, on stages that are replaced by naps.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

#include "pipeline/sleeping_stages.h"
#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

using testing::Nap;
using testing::run_sleeping;
using testing::SleepingRun;

const char* word_for(Op op) {
  switch (op) {
    case Op::kForward:
      return "forward";
    case Op::kBackwardInput:
      return "backward input";
    case Op::kBackwardWeight:
      return "backward weight";
    default:
      return "backward";
  }
}

std::vector<std::string> passes_in_table(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows)
    for (const Pass& pass : passes_of(row))
      names.push_back(fmt::format("{} {} stage {} chunk {}", word_for(pass.op), pass.microbatch,
                                  pass.stage, pass.chunk));
  return names;
}

std::vector<std::string> passes_in(const std::vector<TimeSpan>& spans) {
  std::vector<std::string> names;
  for (const TimeSpan& span : spans) names.push_back(span.name);
  return names;
}

// Order as in the table, activations as simulated.
void expect_as_planned(const Schedule& schedule, const SleepingRun& run) {
  const Simulation plan = simulate(schedule, {});
  for (size_t rank = 0; rank < schedule.rows.size(); ++rank) {
    EXPECT_EQ(passes_in(run.spans[rank]), passes_in_table(schedule.rows[rank])) << "rank " << rank;
    EXPECT_DOUBLE_EQ(run.executions[rank].peak_activation, plan.peak_activation[rank])
        << "rank " << rank;
  }
}

std::string name_of(const ScheduleRequest& request, const Schedule& schedule) {
  return fmt::format("{} on {} ranks, {} micro batches, {} chunks", schedule.algorithm,
                     request.num_ranks, request.num_microbatches, schedule.num_chunks());
}

TEST(EverySchedule, RunsInTheOrderOfItsTableWithinItsMemory) {
  for (const Algorithm& algorithm : algorithms())
    for (const int64_t ranks : {2, 4})
      for (const int64_t microbatches : {ranks, 2 * ranks, 3 * ranks + 1}) {
        const ScheduleRequest request{.num_ranks = ranks, .num_microbatches = microbatches};
        const auto schedule = try_generate(algorithm, request);
        if (!schedule) continue;
        SCOPED_TRACE(name_of(request, *schedule));
        expect_as_planned(*schedule, run_sleeping(*schedule, Nap(0)));
      }
}

// Field case B15: whatever the numbers, nobody waits for ever, with and without buffers.
TEST(EverySchedule, RunsForAnyNumbersEvenIfSendsBlock) {
  std::mt19937_64 random(20261130);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  const auto time = [&] { return static_cast<double>(draw(1, 997)) / 131; };
  int64_t runs = 0;
  for (int round = 0; round < 6; ++round)
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.chooses) continue;
      ScheduleRequest request{.num_ranks = draw(2, 6), .num_microbatches = draw(1, 14)};
      if (algorithm.max_chunks > 2) request.num_chunks = draw(2, 3);
      request.costs.share = {time(), time(), time(), 1};
      const auto schedule = try_generate(algorithm, request);
      if (!schedule) continue;
      SCOPED_TRACE(name_of(request, *schedule));
      expect_as_planned(*schedule, run_sleeping(*schedule, Nap(0), /*sends_block=*/round % 2 == 1));
      ++runs;
    }
  EXPECT_GE(runs, 60);
}

// Field case B15 with messages of 4 MiB, 2,048 tokens of hidden size 512 in fp32: sends block but
// where there are two micro batches a rank.
TEST(EverySchedule, PassesLargeMessagesOnEvenIfSendsBlock) {
  const testing::MessageShape large{.tokens = 2048, .hidden = 512, .dtype = at::kFloat};
  int64_t runs = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.chooses) continue;
    for (const int64_t chunks : {1, 2})
      for (const auto& [ranks, per_rank] :
           {std::pair{2, 1}, {2, 2}, {2, 3}, {4, 1}, {4, 2}, {4, 3}}) {
        const ScheduleRequest request{
            .num_ranks = ranks, .num_microbatches = per_rank * ranks, .num_chunks = chunks};
        const bool is_legal = algorithm.min_chunks <= chunks && chunks <= algorithm.max_chunks;
        const auto schedule = is_legal ? try_generate(algorithm, request) : std::nullopt;
        if (!schedule) continue;
        SCOPED_TRACE(name_of(request, *schedule));
        expect_as_planned(*schedule, run_sleeping(*schedule, Nap(0), per_rank != 2, large));
        ++runs;
      }
  }
  EXPECT_GE(runs, 90);
}

// A stage that throws in the middle of a step: nothing stays queued, and the run ends with its
// message (field case B37).
class ThrowingLayer final : public Layer {
 public:
  LayerOutput forward(const LayerInput& input) const override {
    if (input.microbatch->index == 2) raise<Error>("the third micro batch fails");
    return {.boundary = {}, .losses = {{input.anchor.sum() * 2.0, input.microbatch->loss_seed}}};
  }
  std::vector<Parameter*> parameters() const override { return {}; }
};

TEST(Execute, LeavesNothingQueuedWhenAStepEndsHalfWay) {
  const Schedule schedule = generate("zb-h1", {.num_ranks = 1, .num_microbatches = 4});
  run_ranks(Mesh(MeshShape{}), {}, [&](RankContext& rank) {
    std::vector<Bucket> no_buckets;
    LayerWeights weights(no_buckets, rank);
    GradientReducer reducer(no_buckets, rank);
    std::vector<std::unique_ptr<Layer>> layers;
    layers.push_back(std::make_unique<ThrowingLayer>());
    Chunk chunk(layers, weights, reducer, {});
    const StepTable table(schedule);
    const PipelineRank on{.chunks = {&chunk}, .reducer = &reducer, .rank = &rank};
    std::vector<Microbatch> microbatches = testing::numbered_microbatches(4);
    EXPECT_THROW(execute(table, on, microbatches), Error);
    EXPECT_TRUE(chunk.idle());
  });
}

}  // namespace
}  // namespace sevenfold

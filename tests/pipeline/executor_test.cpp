#include "sevenfold/pipeline/executor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pipeline/small_llama.h"
#include "sevenfold/core/error.h"
#include "sevenfold/schedule/generators/one_f_one_b.h"

namespace sevenfold {
namespace {

using testing::SmallLlama;

StepTable table_of(const std::vector<Row>& rows, int64_t num_microbatches) {
  return StepTable({.num_microbatches = num_microbatches, .rows = {rows}});
}

at::Tensor gradients_of(const std::vector<Row>& rows, int* reductions = nullptr) {
  SmallLlama llama([&](const at::Tensor&) {
    if (reductions) ++*reductions;
  });
  execute(table_of(rows, 2), llama.pipeline_rank(), {llama.microbatch(0), llama.microbatch(1)});
  return llama.all_gradients();
}

TEST(Execute, RunsRowsThatSplitBackwardToTheSameGradients) {
  const std::vector<Row> split = {
      {.op = Op::kForward, .microbatch = 0},        {.op = Op::kForward, .microbatch = 1},
      {.op = Op::kBackwardInput, .microbatch = 0},  {.op = Op::kBackwardInput, .microbatch = 1},
      {.op = Op::kBackwardWeight, .microbatch = 0}, {.op = Op::kBackwardWeight, .microbatch = 1}};
  int reductions = 0;
  const at::Tensor expected = gradients_of(one_f_one_b(1, 2).rows[0]);
  EXPECT_TRUE(at::allclose(gradients_of(split, &reductions), expected, 1e-13, 1e-15));
  EXPECT_EQ(reductions, 5) << "each bucket once, after the last W";
}

TEST(Execute, RefusesATableThatLeavesWorkUndone) {
  EXPECT_THROW(gradients_of({{.op = Op::kForward, .microbatch = 0}}), InternalError);
  EXPECT_THROW(gradients_of({{.op = Op::kForward, .microbatch = 0},
                             {.op = Op::kBackwardInput, .microbatch = 0}}),
               InternalError);
}

TEST(Execute, RefusesRowsOfAChunkThatTheRankDoesNotHave) {
  EXPECT_THROW(gradients_of({{.op = Op::kForward, .chunk = 1, .microbatch = 0}}), InternalError);
}

// A layer whose loss is given: 3 per trained token, but 9 in the micro batch with one.
class GivenLoss final : public Layer {
 public:
  LayerOutput forward(const LayerInput& input) const override {
    const auto tokens = static_cast<double>(input.microbatch->trained_tokens);
    const double loss = input.microbatch->trained_tokens == 1 ? 9.0 : 3.0 * tokens;
    return {.losses = {{input.anchor.sum() + loss, input.microbatch->loss_seed}}};
  }
  std::vector<Parameter*> parameters() const override { return {}; }
};

// The loss is a mean over tokens, not a mean of the means of micro batches (which would be 3.75).
TEST(Execute, WeighsLossesByTrainedTokens) {
  SmallLlama llama;
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<GivenLoss>());
  Chunk chunk(layers, *llama.weights, *llama.reducer, {});
  std::vector<Microbatch> microbatches;
  for (const int64_t tokens : {32, 1, 16, 4, 32, 2, 8, 31}) {
    microbatches.push_back(llama.microbatch(static_cast<int64_t>(microbatches.size())));
    microbatches.back().trained_tokens = tokens;
  }
  PipelineRank on = llama.pipeline_rank();
  on.chunks = {&chunk};
  execute(StepTable(one_f_one_b(1, 8)), on, microbatches);
  EXPECT_NEAR(chunk.loss_sum().item<double>() / 126.0, 3.047619, 5e-7);
}

}  // namespace
}  // namespace sevenfold

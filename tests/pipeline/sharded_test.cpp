// A split backward with ZeRO: gradients are summed and weights gathered layer by layer in each of
// its parts.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>

#include "pipeline/small_llama.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/pipeline/executor.h"

namespace sevenfold {
namespace {

using testing::SmallLlama;

// The parameters of a SmallLlama that one of the data-parallel ranks owns a shard of.
struct ShardedLlama {
  ShardedLlama(RankContext& context, ZeroStage stage, bool tied)
      : rank(context),
        part(build_model(SmallLlama::config(3, tied), {.dtype = at::kDouble})),
        buckets(build_buckets(part.layer_parameters(), rank, at::kDouble, 1, stage)),
        weights(buckets, rank, {.stage = stage}),
        reducer(buckets, rank, stage),
        chunk(part.layers, weights, reducer, {}) {
    for (const auto& parameter : part.parameters) {
      const at::Tensor whole = at::empty(parameter->sizes(), at::kDouble);
      fill_start_values(whole, *parameter, {.kind = StartKind::kHot},
                        local_slice(parameter->spec(), *rank.mesh, rank.coordinates));
      const ElementRange owned = parameter->owned();
      parameter->owned_weight().copy_(whole.view({-1}).narrow(0, owned.begin, owned.size()));
    }
    if (stage != ZeroStage::kParameters) weights.stepped();
  }

  void run(const std::vector<Row>& rows) {
    std::vector<Microbatch> microbatches;
    for (int64_t index = 0; index < 3; ++index) {
      microbatches.push_back(SmallLlama::microbatch(10 * rank.rank + index));
      microbatches.back().index = index;
    }
    reducer.begin_step();
    const Schedule schedule{.algorithm = "by hand", .num_microbatches = 3, .rows = {rows}};
    execute(StepTable(schedule),
            {.chunks = {&chunk}, .reducer = &reducer, .rank = &rank, .dtype = at::kDouble},
            microbatches);
    reducer.finish();
  }

  RankContext& rank;
  ModelPart part;
  std::vector<Bucket> buckets;
  LayerWeights weights;
  GradientReducer reducer;
  Chunk chunk;
};

const std::vector<Row> kWhole = {
    {.op = Op::kForward, .microbatch = 0},  {.op = Op::kForward, .microbatch = 1},
    {.op = Op::kForward, .microbatch = 2},  {.op = Op::kBackward, .microbatch = 0},
    {.op = Op::kBackward, .microbatch = 1}, {.op = Op::kBackward, .microbatch = 2}};
// Two micro batches wait for their weight gradients when the third runs.
const std::vector<Row> kSplit = {
    {.op = Op::kForward, .microbatch = 0},        {.op = Op::kForward, .microbatch = 1},
    {.op = Op::kBackwardInput, .microbatch = 0},  {.op = Op::kForward, .microbatch = 2},
    {.op = Op::kBackwardInput, .microbatch = 1},  {.op = Op::kBackwardInput, .microbatch = 2},
    {.op = Op::kBackwardWeight, .microbatch = 0}, {.op = Op::kBackwardWeight, .microbatch = 1},
    {.op = Op::kBackwardWeight, .microbatch = 2}};

// What three ranks hold after the rows: of each parameter the owned gradients side by side.
struct Outcome {
  std::map<std::string, at::Tensor> gradients;
  int64_t reduced_bytes = 0;  // by all ranks in reduce-scatters
  int64_t peak_communication = 0;
};

Outcome outcome_of(ZeroStage stage, const std::vector<Row>& rows, bool tied) {
  install_allocator();
  Outcome outcome;
  std::mutex mutex;
  run_ranks(Mesh({.dp = 3}), {}, [&](RankContext& rank) {
    ShardedLlama llama(rank, stage, tied);
    rank.memory.reset_peaks();
    rank.traffic.clear();
    llama.run(rows);
    const std::lock_guard<std::mutex> lock(mutex);
    outcome.peak_communication =
        std::max(outcome.peak_communication, rank.memory.peak(MemoryCategory::kCommunication));
    for (const auto& [where, entry] : rank.traffic.entries())
      if (where.second == "reduce_scatter") outcome.reduced_bytes += entry.bytes_sent;
    for (const auto& parameter : llama.part.parameters) {
      at::Tensor& whole = outcome.gradients[parameter->name()];
      if (!whole.defined()) whole = at::zeros({parameter->num_elements()}, at::kDouble);
      const ElementRange owned = parameter->owned();
      whole.narrow(0, owned.begin, owned.size()).copy_(parameter->owned_gradient());
    }
  });
  return outcome;
}

class SplitBackward : public ::testing::TestWithParam<std::tuple<ZeroStage, bool>> {};

TEST_P(SplitBackward, GivesTheGradientsOfAWholeOne) {
  const auto [stage, tied] = GetParam();
  const Outcome whole = outcome_of(stage, kWhole, tied), split = outcome_of(stage, kSplit, tied);
  const Outcome replicated = outcome_of(ZeroStage::kNone, kWhole, tied);
  for (const auto& [name, gradient] : whole.gradients) {
    EXPECT_GT(gradient.abs().max().item<double>(), 0.0) << name;
    EXPECT_TRUE(at::allclose(gradient, replicated.gradients.at(name), 1e-12, 1e-15)) << name;
    const at::Tensor& in_parts = split.gradients.at(name);
    // The two parts of a tied table's gradient are added up in another order.
    if (tied && name == "model.embed_tokens.weight") {
      EXPECT_TRUE(at::allclose(in_parts, gradient, 1e-12, 1e-15));
    } else {
      EXPECT_TRUE(at::equal(in_parts, gradient)) << name;
    }
  }
}

// Each part sends and holds what it adds to: together a reduce-scatter of everything, and of a tied
// table two.
TEST_P(SplitBackward, SendsAGradientOnceAndHoldsNoMoreThanAWholeOne) {
  const auto [stage, tied] = GetParam();
  const Outcome whole = outcome_of(stage, kWhole, tied), split = outcome_of(stage, kSplit, tied);
  const bool sends_twice = tied && stage >= ZeroStage::kGradients;
  EXPECT_GT(whole.reduced_bytes, 0);
  EXPECT_EQ(split.reduced_bytes, whole.reduced_bytes + (sends_twice ? 3 * 2 * 11 * 8 * 8 : 0));
  EXPECT_EQ(split.peak_communication, whole.peak_communication);
}

INSTANTIATE_TEST_SUITE_P(Stages, SplitBackward,
                         ::testing::Combine(::testing::Values(ZeroStage::kOptimizer,
                                                              ZeroStage::kGradients,
                                                              ZeroStage::kParameters),
                                            ::testing::Bool()),
                         [](const auto& instance) {
                           return "stage" +
                                  std::to_string(static_cast<int>(std::get<0>(instance.param))) +
                                  (std::get<1>(instance.param) ? "_tied" : "_untied");
                         });

}  // namespace
}  // namespace sevenfold

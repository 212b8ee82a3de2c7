// Linear layers between parts of sequences against the whole layers: outputs, gradients, traffic.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "parallel/tensor/cut_parameter.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/parallel/sequence/sequence_parallel_linear.h"
#include "sevenfold/parallel/sequence/sequence_shards.h"

namespace sevenfold {
namespace {

using testing::near;
using testing::random_matrix;

constexpr int64_t kSamples = 3, kTokens = 8, kWidth = 6, kWide = 12;

class SequenceParts : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { at::manual_seed(4); }
};
INSTANTIATE_TEST_SUITE_P(Ranks, SequenceParts, ::testing::Values(2, 4));

TensorParallel tensor_of(const RankContext& rank, bool overlap = true) {
  return {.group = &rank.group("tp"), .sequence = true, .overlap = overlap};
}

at::Tensor leaf(const at::Tensor& x) {
  return x.detach().clone().set_requires_grad(true);
}

at::Tensor flat(const at::Tensor& x) {
  return x.reshape({-1, x.size(2)});
}

struct ColumnRun {
  at::Tensor x = random_matrix({kSamples, kTokens, kWidth});
  at::Tensor w = random_matrix({kWide, kWidth});
  at::Tensor dy = random_matrix({kSamples * kTokens, kWide});
};

void check_column(const ColumnRun& run, RankContext& rank, BackwardPart part, bool overlap) {
  const TensorParallel tensor = tensor_of(rank, overlap);
  const ShardSpec spec = column_parallel_spec({kWide, kWidth}, tensor);
  const auto weight = testing::cut_parameter(run.w, spec, rank);
  const std::vector<Parameter*> weights = {weight.get()};
  const auto columns = [&](const at::Tensor& y) { return testing::columns_of(y, spec, rank); };
  WeightGradients gradients;
  gradients.begin(0, part);
  const at::Tensor x = leaf(own_part(run.x, tensor));
  rank.traffic.clear();
  const at::Tensor y = gathering_column_linear(x, weights, gradients, tensor)[0];
  EXPECT_TRUE(near(y, columns(at::mm(flat(run.x), run.w.t()))));
  torch::autograd::backward({y}, {columns(run.dy)});
  if (part == BackwardPart::kInputOnly) gradients.run(0, 0);
  EXPECT_TRUE(near(x.grad(), own_part(at::mm(run.dy, run.w).view_as(run.x), tensor)));
  EXPECT_TRUE(
      near(weight->gradient(), testing::part_of(at::mm(run.dy.t(), flat(run.x)), spec, rank)));
  // All-gather, all-gather again and reduce-scatter.
  const int64_t n = tensor.size();
  EXPECT_EQ(rank.traffic.of_group("tp").operations, 3);
  EXPECT_EQ(rank.traffic.of_group("tp").bytes_sent,
            3 * (n - 1) * kSamples * kTokens * kWidth * 8 / n);
}

TEST_P(SequenceParts, AreGatheredBeforeTheColumnParallelLayer) {
  const ColumnRun run;
  run_ranks(Mesh({.tp = GetParam()}), {}, [&](RankContext& rank) {
    for (const BackwardPart part : {BackwardPart::kFull, BackwardPart::kInputOnly})
      for (const bool overlap : {true, false}) check_column(run, rank, part, overlap);
  });
}

TEST_P(SequenceParts, AreScatteredAfterTheRowParallelLayer) {
  const at::Tensor x = random_matrix({kSamples * kTokens, kWide});
  const at::Tensor w = random_matrix({kWidth, kWide});
  const at::Tensor dy = random_matrix({kSamples, kTokens, kWidth});
  run_ranks(Mesh({.tp = GetParam()}), {}, [&](RankContext& rank) {
    const TensorParallel tensor = tensor_of(rank);
    const int64_t n = tensor.size(), width = kWide / n;
    const ShardSpec spec = row_parallel_spec({kWidth, kWide}, tensor);
    const auto part = testing::cut_parameter(w, spec, rank);
    const std::vector<Parameter*> weight = {part.get()};
    const auto columns = [&](const at::Tensor& a) {
      return a.narrow(1, tensor.rank() * width, width).contiguous();
    };
    WeightGradients gradients;
    const at::Tensor input = leaf(columns(x));
    const at::Tensor y = scattering_row_linear(input, kSamples, weight, gradients, tensor);
    EXPECT_TRUE(near(y, own_part(at::mm(x, w.t()).view({kSamples, kTokens, kWidth}), tensor)));
    torch::autograd::backward({y}, {own_part(dy, tensor)});
    EXPECT_TRUE(near(input.grad(), columns(at::mm(flat(dy), w))));
    EXPECT_TRUE(near(part->gradient(), testing::part_of(at::mm(flat(dy).t(), x), spec, rank)));
    EXPECT_EQ(rank.traffic.of_group("tp").operations, 2);
    EXPECT_EQ(rank.traffic.of_group("tp").bytes_sent,
              2 * (n - 1) * kSamples * kTokens * kWidth * 8 / n);
  });
}

TEST_P(SequenceParts, OfASumAreEachRanksTokensOfIt) {
  const at::Tensor x = random_matrix({kSamples, kTokens, kWidth});
  const at::Tensor dy = random_matrix({kSamples, kTokens, kWidth});
  run_ranks(Mesh({.tp = GetParam()}), {}, [&](RankContext& rank) {
    const TensorParallel tensor = tensor_of(rank);
    const at::Tensor input = leaf(x * (static_cast<double>(tensor.rank()) + 1.0));
    const at::Tensor y = reduce_scatter_to_sp(input, tensor);
    const double ranks = static_cast<double>(tensor.size());
    EXPECT_TRUE(near(y, own_part(x * (ranks * (ranks + 1) / 2), tensor)));
    torch::autograd::backward({y}, {own_part(dy, tensor)});
    EXPECT_TRUE(near(input.grad(), dy));
  });
}

}  // namespace
}  // namespace sevenfold

// Linear layers cut over ranks against the whole layer: outputs, gradients and what was sent.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "parallel/tensor/cut_parameter.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/parallel/tensor/column_parallel_linear.h"
#include "sevenfold/parallel/tensor/row_parallel_linear.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

using testing::columns_of;
using testing::cut_parameter;
using testing::near;
using testing::part_of;
using testing::random_matrix;

TensorParallel tensor_of(const RankContext& rank) {
  return {.group = &rank.group("tp")};
}

at::Tensor leaf(const at::Tensor& x) {
  return x.detach().clone().set_requires_grad(true);
}

class CutLinear : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { at::manual_seed(3); }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CutLinear, ::testing::Values(1, 2, 4));

TEST(ColumnParallelLinear, OfOneRankAgreesWithFiniteDifferences) {
  at::manual_seed(7);
  WeightGradients gradients;
  const auto a = testing::random_parameter("a", {5, 7}), b = testing::random_parameter("b", {3, 7});
  const std::vector<Parameter*> weights = {a.get(), b.get()};
  const at::Tensor x = random_matrix({6, 7});
  const TensorParallel alone;
  testing::expect_gradients_match(
      [&] { return at::cat(column_parallel_linear(x, weights, gradients, alone), 1); }, {x},
      weights);
}

TEST(RowParallelLinear, OfOneRankAgreesWithFiniteDifferences) {
  at::manual_seed(7);
  WeightGradients gradients;
  const auto weight = testing::random_parameter("weight", {5, 7});
  const std::vector<Parameter*> list = {weight.get()};
  const at::Tensor x = random_matrix({6, 7});
  const TensorParallel alone;
  testing::expect_gradients_match([&] { return row_parallel_linear(x, list, gradients, alone); },
                                  {x}, list);
}

// Two column-parallel layers that read one input: forward sends nothing, backward one all-reduce.
TEST_P(CutLinear, ByOutputsIsTheWholeLayerInColumns) {
  const at::Tensor x = random_matrix({6, 10}), u = random_matrix({8, 10}),
                   v = random_matrix({4, 10});
  const at::Tensor du = random_matrix({6, 8}), dv = random_matrix({6, 4});
  run_ranks(Mesh({.tp = GetParam()}), {}, [&](RankContext& rank) {
    const TensorParallel tensor = tensor_of(rank);
    const ShardSpec u_spec = column_parallel_spec({8, 10}, tensor);
    const ShardSpec v_spec = column_parallel_spec({4, 10}, tensor);
    const auto u_part = cut_parameter(u, u_spec, rank), v_part = cut_parameter(v, v_spec, rank);
    const std::vector<Parameter*> weights = {u_part.get(), v_part.get()};
    WeightGradients gradients;
    const at::Tensor input = leaf(x);
    const auto y = column_parallel_linear(input, weights, gradients, tensor);
    EXPECT_EQ(rank.traffic.total().bytes_sent, 0);
    EXPECT_TRUE(near(y[0], columns_of(at::mm(x, u.t()), u_spec, rank)));
    EXPECT_TRUE(near(y[1], columns_of(at::mm(x, v.t()), v_spec, rank)));
    torch::autograd::backward({y[0], y[1]},
                              {columns_of(du, u_spec, rank), columns_of(dv, v_spec, rank)});
    EXPECT_TRUE(near(input.grad(), at::mm(du, u) + at::mm(dv, v)));
    EXPECT_TRUE(near(u_part->gradient(), part_of(at::mm(du.t(), x), u_spec, rank)));
    EXPECT_TRUE(near(v_part->gradient(), part_of(at::mm(dv.t(), x), v_spec, rank)));
    const int64_t n = GetParam();
    EXPECT_EQ(rank.traffic.of_group("tp").operations, n > 1 ? 1 : 0);
    EXPECT_EQ(rank.traffic.of_group("tp").bytes_sent, 2 * (n - 1) * 6 * 10 * 8 / n);
  });
}

// Input split already: forward one all-reduce, backward nothing.
TEST_P(CutLinear, ByInputsIsTheWholeLayerAfterTheSum) {
  const at::Tensor x = random_matrix({6, 8}), w = random_matrix({10, 8}),
                   dy = random_matrix({6, 10});
  run_ranks(Mesh({.tp = GetParam()}), {}, [&](RankContext& rank) {
    const TensorParallel tensor = tensor_of(rank);
    const ShardSpec spec = row_parallel_spec({10, 8}, tensor);
    const auto part = cut_parameter(w, spec, rank);
    const std::vector<Parameter*> weight = {part.get()};
    const int64_t width = 8 / tensor.size();
    const at::Tensor input = leaf(x.narrow(1, tensor.rank() * width, width).contiguous());
    WeightGradients gradients;
    const at::Tensor y = row_parallel_linear(input, weight, gradients, tensor);
    EXPECT_TRUE(near(y, at::mm(x, w.t())));
    const int64_t sent = rank.traffic.total().bytes_sent;
    EXPECT_EQ(sent, 2 * (tensor.size() - 1) * 6 * 10 * 8 / tensor.size());
    torch::autograd::backward({y}, {dy});
    EXPECT_EQ(rank.traffic.total().bytes_sent, sent);
    EXPECT_TRUE(
        near(input.grad(), at::mm(dy, w).narrow(1, tensor.rank() * width, width).contiguous()));
    EXPECT_TRUE(near(part->gradient(), part_of(at::mm(dy.t(), x), spec, rank)));
  });
}

// A whole input is split first (scatter_to_tp), or a cut output made whole (gather_from_tp).
TEST_P(CutLinear, TakesWholeInputsAndGivesWholeOutputsWhereAskedTo) {
  const at::Tensor x = random_matrix({6, 8}), w = random_matrix({4, 8}), dy = random_matrix({6, 4});
  run_ranks(Mesh({.tp = GetParam()}), {}, [&](RankContext& rank) {
    const TensorParallel tensor = tensor_of(rank);
    WeightGradients gradients;
    for (const bool by_outputs : {true, false}) {
      const ShardSpec spec =
          by_outputs ? column_parallel_spec({4, 8}, tensor) : row_parallel_spec({4, 8}, tensor);
      const auto part = cut_parameter(w, spec, rank);
      const std::vector<Parameter*> weight = {part.get()};
      const at::Tensor input = leaf(x);
      const at::Tensor y =
          by_outputs
              ? gather_from_tp(column_parallel_linear(input, weight, gradients, tensor)[0], tensor)
              : row_parallel_linear(scatter_to_tp(input, tensor), weight, gradients, tensor);
      EXPECT_TRUE(near(y, at::mm(x, w.t()))) << by_outputs;
      torch::autograd::backward({y}, {dy});
      EXPECT_TRUE(near(input.grad(), at::mm(dy, w))) << by_outputs;
      EXPECT_TRUE(near(part->gradient(), part_of(at::mm(dy.t(), x), spec, rank))) << by_outputs;
    }
  });
}

TEST(VocabularyPlacement, GivesPartsThatDifferByOneRowAtMost) {
  run_ranks(Mesh({.tp = 4}), {}, [](RankContext& rank) {
    const TensorParallel tensor = tensor_of(rank);
    const ShardSpec spec = vocabulary_parallel_spec({101, 3}, tensor);
    const Slice slice = local_slice(spec, *rank.mesh, rank.coordinates);
    EXPECT_EQ(slice.offsets[0], first_vocabulary_row(101, tensor));
    EXPECT_EQ(slice.sizes[0], rank.rank == 3 ? 26 : 25);
    EXPECT_EQ(slice.sizes[1], 3);
  });
}

}  // namespace
}  // namespace sevenfold

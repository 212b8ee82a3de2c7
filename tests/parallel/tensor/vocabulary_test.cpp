// Cross entropy and embedding on parts of a vocabulary against the whole one.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "parallel/tensor/cut_parameter.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/nn/cross_entropy.h"
#include "sevenfold/nn/embedding.h"
#include "sevenfold/parallel/tensor/row_parallel_linear.h"
#include "sevenfold/parallel/tensor/vocabulary_parallel_cross_entropy.h"

namespace sevenfold {
namespace {

using testing::near;

struct Case {
  int64_t ranks;
  int64_t vocabulary;  // 3 on 4 ranks: one rank has no row
};

class CutVocabulary : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { at::manual_seed(9); }
};
INSTANTIATE_TEST_SUITE_P(Sizes, CutVocabulary,
                         ::testing::Values(Case{2, 12}, Case{2, 13}, Case{4, 13}, Case{4, 3},
                                           Case{3, 101}));

struct Tokens {
  at::Tensor labels, mask;
};

Tokens tokens(int64_t vocabulary) {
  const at::Tensor labels = at::arange(10, at::kLong).mul(7).remainder(vocabulary);
  at::Tensor mask = at::ones({10}, at::kDouble);
  mask[3].zero_();
  return {labels, mask};
}

TEST_P(CutVocabulary, HasTheCrossEntropyOfTheWholeOne) {
  const auto [ranks, vocabulary] = GetParam();
  // Large logits: without the maximum of all ranks the exponentials overflow.
  const at::Tensor logits = testing::random_matrix({10, vocabulary}) * 300;
  const auto [labels, mask] = tokens(vocabulary);
  const at::Tensor whole = logits.clone().set_requires_grad(true);
  const at::Tensor expected = cross_entropy_sum(whole, labels, mask);
  const at::Tensor seed = at::full({}, 0.125, at::kDouble);
  torch::autograd::backward({expected}, {seed});
  run_ranks(Mesh({.tp = ranks}), {}, [&, labels = labels, mask = mask](RankContext& rank) {
    const TensorParallel tensor{.group = &rank.group("tp")};
    const ShardSpec spec = vocabulary_parallel_spec({vocabulary, 10}, tensor);
    const auto columns = [&](const at::Tensor& x) { return testing::columns_of(x, spec, rank); };
    const at::Tensor part = columns(logits).set_requires_grad(true);
    const at::Tensor loss = vocabulary_parallel_cross_entropy(
        part, labels, mask, first_vocabulary_row(vocabulary, tensor), tensor);
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(),
                1e-12 * std::abs(expected.item<double>()));
    // Two all-reduces, of [N] and [2, N] doubles; nothing in backward.
    const TrafficEntry sent = rank.traffic.of_group("tp");
    EXPECT_EQ(sent.operations, 2);
    torch::autograd::backward({loss}, {seed});
    EXPECT_EQ(rank.traffic.of_group("tp").operations, 2);
    EXPECT_TRUE(near(part.grad(), columns(whole.grad())));
  });
}

TEST_P(CutVocabulary, LooksUpWhatTheWholeTableHolds) {
  const auto [ranks, vocabulary] = GetParam();
  const at::Tensor table = testing::random_matrix({vocabulary, 6});
  const at::Tensor index = tokens(vocabulary).labels.view({2, 5});
  const at::Tensor dy = testing::random_matrix({2, 5, 6});
  const at::Tensor gradient = at::zeros_like(table).index_add(0, index.view(-1), dy.view({-1, 6}));
  run_ranks(Mesh({.tp = ranks}), {}, [&](RankContext& rank) {
    const TensorParallel tensor{.group = &rank.group("tp")};
    const ShardSpec spec = vocabulary_parallel_spec({vocabulary, 6}, tensor);
    const auto part = testing::cut_parameter(table, spec, rank);
    const at::Tensor anchor = at::zeros({1}, at::kDouble).set_requires_grad(true);
    const at::Tensor rows = reduce_from_tp(
        embedding(index, anchor, *part, first_vocabulary_row(vocabulary, tensor)), tensor);
    EXPECT_TRUE(at::equal(rows, table.index_select(0, index.view(-1)).view({2, 5, 6})));
    torch::autograd::backward({rows}, {dy});
    EXPECT_TRUE(near(part->gradient(), testing::part_of(gradient, spec, rank)));
  });
}

}  // namespace
}  // namespace sevenfold

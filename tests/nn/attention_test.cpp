#include "sevenfold/nn/attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

namespace sevenfold {
namespace {

// Explicit masks of [B, heads, T, T] for the dense reference.
struct DenseMasks {
  at::Tensor hidden;   // bool: the query may not see the key
  at::Tensor dropout;  // what the probabilities are multiplied with; undefined: nothing
};

// Plain softmax in one piece, KV heads copied: what the blocks must give.
at::Tensor dense_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           double scale, const DenseMasks& masks) {
  const int64_t repeat = q.size(2) / k.size(2);
  const at::Tensor keys = k.repeat_interleave(repeat, 2).permute({0, 2, 1, 3});
  const at::Tensor values = v.repeat_interleave(repeat, 2).permute({0, 2, 1, 3});
  at::Tensor scores = at::matmul(q.permute({0, 2, 1, 3}), keys.transpose(2, 3)) * scale;
  at::Tensor weights = at::softmax(scores.masked_fill(masks.hidden, -INFINITY), -1);
  if (masks.dropout.defined()) weights = weights * masks.dropout;
  return at::matmul(weights, values).permute({0, 2, 1, 3});
}

// The masks element by element, from their definitions.
DenseMasks dense_masks(int64_t batch, int64_t length, int64_t heads, const AttentionMasks& masks) {
  DenseMasks dense{at::zeros({batch, heads, length, length}, at::kBool), {}};
  if (masks.dropout)
    dense.dropout = at::zeros({batch, heads, length, length}, at::TensorOptions(at::kDouble));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t query = 0; query < length; ++query)
        for (int64_t key = 0; key < length; ++key) {
          const int64_t first =
              masks.first_key_BT.defined() ? masks.first_key_BT[b][query].item<int64_t>() : 0;
          const int64_t at = ((b * heads + h) * length + query) * length + key;
          dense.hidden.data_ptr<bool>()[at] = key < first || key > query;
          if (!masks.dropout) continue;
          RandomSite site = masks.dropout->site;
          site.head += h;
          std::vector<uint32_t> number(1);
          RandomStream(site).draw(masks.sample_ids[static_cast<size_t>(b)], query, key, number);
          const bool dropped = number[0] * 0x1p-32 < masks.dropout->rate;
          dense.dropout.data_ptr<double>()[at] = dropped ? 0.0 : 1.0 / (1.0 - masks.dropout->rate);
        }
  return dense;
}

struct Inputs {
  at::Tensor q, k, v;
};

Inputs random_inputs(int64_t length, int64_t heads, int64_t groups) {
  const auto leaf = [&](int64_t n) {
    return at::randn({2, length, n, 4}, at::TensorOptions().dtype(at::kDouble))
        .set_requires_grad(true);
  };
  return {leaf(heads), leaf(groups), leaf(groups)};
}

void expect_equal_to_dense(Inputs in, const AttentionMasks& masks = {}) {
  const at::Tensor blocked = causal_attention(in.q, in.k, in.v, 0.5, masks);
  const at::Tensor seed = at::randn(blocked.sizes(), blocked.options());
  torch::autograd::backward({blocked}, {seed});
  const std::vector<at::Tensor> gradients = {in.q.grad().clone(), in.k.grad().clone(),
                                             in.v.grad().clone()};
  const at::Tensor dense = dense_attention(
      in.q, in.k, in.v, 0.5, dense_masks(in.q.size(0), in.q.size(1), in.q.size(2), masks));
  EXPECT_LT((blocked - dense).abs().max().item<double>(), 1e-12);
  const auto expected = torch::autograd::grad({dense}, {in.q, in.k, in.v}, {seed});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT((gradients[i] - expected[i]).abs().max().item<double>(), 1e-12) << "qkv"[i];
}

TEST(CausalAttention, EqualsDenseAttentionAcrossBlocksOfQueries) {
  at::manual_seed(3);
  for (const int64_t length :
       {int64_t{1}, int64_t{5}, kAttentionBlock, kAttentionBlock + 1, 2 * kAttentionBlock + 9})
    expect_equal_to_dense(random_inputs(length, 4, 2));
}

TEST(CausalAttention, EqualsDenseAttentionForEveryGrouping) {
  at::manual_seed(4);
  for (const int64_t groups : {1, 2, 4})
    expect_equal_to_dense(random_inputs(kAttentionBlock + 3, 4, groups));
}

TEST(CausalAttention, SurvivesLargeScores) {
  at::manual_seed(5);
  Inputs in = random_inputs(kAttentionBlock + 2, 2, 1);
  {
    const at::NoGradGuard no_graph;
    in.q.narrow(1, 0, 7).add_(80.0);
  }
  expect_equal_to_dense(in);
}

// Two rows whose documents begin at the given places.
at::Tensor first_keys(int64_t length, const std::vector<std::vector<int64_t>>& starts) {
  const at::Tensor first = at::zeros({2, length}, at::kLong);
  for (size_t row = 0; row < 2; ++row)
    for (const int64_t start : starts[row])
      first.select(0, static_cast<int64_t>(row)).narrow(0, start, length - start).fill_(start);
  return first;
}

TEST(CausalAttention, KeepsToTheDocumentOfTheQuery) {
  at::manual_seed(6);
  expect_equal_to_dense(random_inputs(9, 4, 2), {.first_key_BT = first_keys(9, {{4, 5}, {0}})});
  // The second row's first document ends in the first block: later blocks begin behind it.
  constexpr int64_t kLength = kAttentionBlock + 40;
  expect_equal_to_dense(random_inputs(kLength, 2, 1),
                        {.first_key_BT = first_keys(
                             kLength, {{7, kAttentionBlock - 1}, {100, kAttentionBlock + 3}})});
}

TEST(CausalAttention, OfADocumentDependsOnNothingBeforeIt) {
  at::manual_seed(7);
  const Inputs in = random_inputs(8, 2, 1);
  const at::NoGradGuard no_graph;
  const AttentionMasks masks{.first_key_BT = first_keys(8, {{5}, {5}})};
  const at::Tensor before = causal_attention(in.q, in.k, in.v, 0.5, masks);
  in.k.narrow(1, 0, 5).fill_(1e3);
  in.v.narrow(1, 0, 5).fill_(1e3);
  const at::Tensor after = causal_attention(in.q, in.k, in.v, 0.5, masks);
  EXPECT_TRUE(at::equal(before.narrow(1, 5, 3), after.narrow(1, 5, 3)));
}

Dropout attention_dropout() {
  return {
      .rate = 0.3,
      .site = {.seed = 99, .layer = 2, .operation = RandomOperation::kAttentionDropout, .head = 6}};
}

TEST(CausalAttention, DropsTheProbabilitiesThatTheRandomStreamSays) {
  at::manual_seed(8);
  const Dropout dropout = attention_dropout();
  expect_equal_to_dense(random_inputs(11, 4, 2), {.dropout = &dropout, .sample_ids = {3, 41}});
  expect_equal_to_dense(random_inputs(kAttentionBlock + 6, 2, 1),
                        {.dropout = &dropout, .sample_ids = {0, 7}});
}

TEST(CausalAttention, DropsWithinDocuments) {
  at::manual_seed(9);
  const Dropout dropout = attention_dropout();
  constexpr int64_t kLength = kAttentionBlock + 5;
  expect_equal_to_dense(
      random_inputs(kLength, 2, 2),
      {.first_key_BT = first_keys(kLength, {{50, kAttentionBlock}, {kAttentionBlock - 5}}),
       .dropout = &dropout,
       .sample_ids = {5, 6}});
}

// A rank that holds the second half of the heads draws their part of the whole.
TEST(CausalAttention, DropsTheSameOnARankWithPartOfTheHeads) {
  at::manual_seed(10);
  const Inputs in = random_inputs(12, 4, 2);
  const at::NoGradGuard no_graph;
  const Dropout whole = attention_dropout();
  Dropout half = whole;
  half.site.head += 2;
  const std::vector<int64_t> samples = {3, 4};
  const at::Tensor all =
      causal_attention(in.q, in.k, in.v, 0.5, {.dropout = &whole, .sample_ids = samples});
  const at::Tensor part =
      causal_attention(in.q.narrow(2, 2, 2), in.k.narrow(2, 1, 1), in.v.narrow(2, 1, 1), 0.5,
                       {.dropout = &half, .sample_ids = samples});
  EXPECT_LT((all.narrow(2, 2, 2) - part).abs().max().item<double>(), 1e-15);
}

}  // namespace
}  // namespace sevenfold

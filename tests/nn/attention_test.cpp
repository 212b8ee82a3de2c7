#include "sevenfold/nn/attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace sevenfold {
namespace {

// Plain causal softmax in one piece, KV heads copied: what the blocks must give.
at::Tensor dense_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           double scale) {
  const int64_t repeat = q.size(2) / k.size(2), length = q.size(1);
  const at::Tensor keys = k.repeat_interleave(repeat, 2).permute({0, 2, 1, 3});
  const at::Tensor values = v.repeat_interleave(repeat, 2).permute({0, 2, 1, 3});
  at::Tensor scores = at::matmul(q.permute({0, 2, 1, 3}), keys.transpose(2, 3)) * scale;
  const at::Tensor future = at::ones({length, length}, at::kBool).triu_(1);
  scores = scores.masked_fill(future, -INFINITY);
  return at::matmul(at::softmax(scores, -1), values).permute({0, 2, 1, 3});
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

void expect_equal_to_dense(Inputs in) {
  const at::Tensor blocked = causal_attention(in.q, in.k, in.v, 0.5);
  const at::Tensor seed = at::randn(blocked.sizes(), blocked.options());
  torch::autograd::backward({blocked}, {seed});
  const std::vector<at::Tensor> gradients = {in.q.grad().clone(), in.k.grad().clone(),
                                             in.v.grad().clone()};
  const at::Tensor dense = dense_attention(in.q, in.k, in.v, 0.5);
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

}  // namespace
}  // namespace sevenfold

// Gradients of every operation against central differences in fp64.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/nn/activations.h"
#include "sevenfold/nn/attention.h"
#include "sevenfold/nn/bias.h"
#include "sevenfold/nn/cross_entropy.h"
#include "sevenfold/nn/embedding.h"
#include "sevenfold/nn/layer_norm.h"
#include "sevenfold/nn/position_embedding.h"
#include "sevenfold/nn/rms_norm.h"
#include "sevenfold/nn/rotary.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

using testing::expect_gradients_match;
using testing::random_parameter;

at::Tensor random_tensor(std::vector<int64_t> shape) {
  return at::randn(shape, at::TensorOptions().dtype(at::kDouble));
}

class GradientsAgreeWithFiniteDifferences : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(7); }
};

TEST_F(GradientsAgreeWithFiniteDifferences, OfRmsNorm) {
  // 19 components: more than two sets of the kernel's eight partial sums, and a rest.
  const auto gain = random_parameter("gain", {19});
  const at::Tensor x = random_tensor({2, 3, 19});
  expect_gradients_match([&] { return rms_norm(x, *gain, 1e-5); }, {x}, {gain.get()});
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfRmsNormNearZeroWhereEpsilonRules) {
  const auto gain = random_parameter("gain", {5});
  const at::Tensor x = random_tensor({3, 5}).mul_(1e-2);
  expect_gradients_match([&] { return rms_norm(x, *gain, 1e-3); }, {x}, {gain.get()}, 1e-6);
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfLayerNorm) {
  const auto gain = random_parameter("gain", {19}), bias = random_parameter("bias", {19});
  const at::Tensor x = random_tensor({2, 3, 19});
  expect_gradients_match([&] { return layer_norm(x, *gain, *bias, 1e-5); }, {x},
                         {gain.get(), bias.get()});
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfABias) {
  const auto bias = random_parameter("bias", {7});
  const at::Tensor x = random_tensor({5, 7});
  expect_gradients_match([&] { return add_bias(x, *bias); }, {x}, {bias.get()});
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfRotaryInItsForms) {
  const at::Tensor positions = at::tensor({0, 1, 2, 0, 1, 0, 0, 1, 5, 2}, at::kLong).view({2, 5});
  for (const double percent : {1.0, 0.5})
    for (const bool interleaved : {false, true}) {
      const RotaryTable table = rotary_table({.length = 6,
                                              .head_size = 8,
                                              .percent = percent,
                                              .base = 100.0,
                                              .interleaved = interleaved},
                                             at::kDouble);
      const at::Tensor x = random_tensor({2, 5, 3, 8});
      expect_gradients_match([&] { return rotate(x, table); }, {x}, {});
      const at::Tensor z = random_tensor({2, 5, 3, 8});
      expect_gradients_match([&] { return rotate(z, table, positions); }, {z}, {});
    }
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfCausalAttention) {
  const at::Tensor q = random_tensor({2, 6, 4, 3});
  const at::Tensor k = random_tensor({2, 6, 2, 3}), v = random_tensor({2, 6, 2, 3});
  expect_gradients_match([&] { return causal_attention(q, k, v, 0.7); }, {q, k, v}, {});
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfCausalAttentionWithDropoutAndDocuments) {
  const Dropout dropout{.rate = 0.4,
                        .site = {.seed = 1, .operation = RandomOperation::kAttentionDropout}};
  const at::Tensor first = at::tensor({0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 4, 4}, at::kLong);
  const at::Tensor q = random_tensor({2, 6, 4, 3});
  const at::Tensor k = random_tensor({2, 6, 2, 3}), v = random_tensor({2, 6, 2, 3});
  const AttentionMasks masks{first.view({2, 6}), &dropout, {9, 4}};
  expect_gradients_match([&] { return causal_attention(q, k, v, 0.7, masks); }, {q, k, v}, {});
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfEveryActivation) {
  for (const Activation activation :
       {Activation::kSwiglu, Activation::kQuickGeglu, Activation::kGelu, Activation::kGeluTanh,
        Activation::kSquaredRelu}) {
    const at::Tensor gate = random_tensor({4, 5}), up = random_tensor({4, 5});
    if (is_gated(activation)) {
      expect_gradients_match([&] { return activate_gated(activation, gate, up); }, {gate, up}, {});
    } else {
      expect_gradients_match([&] { return activate(activation, up); }, {up}, {});
    }
  }
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfPositionsInOrderAndReset) {
  const auto table = random_parameter("positions", {7, 3});
  const at::Tensor x = random_tensor({2, 4, 3}), y = random_tensor({2, 4, 3});
  expect_gradients_match([&] { return add_position_embedding(x, *table, {}); }, {x}, {table.get()});
  table->gradient().zero_();
  const at::Tensor positions = at::tensor({0, 1, 0, 1, 0, 0, 6, 2}, at::kLong).view({2, 4});
  expect_gradients_match([&] { return add_position_embedding(y, *table, positions); }, {y},
                         {table.get()});
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfEmbeddingWithRepeatedTokens) {
  const auto table = random_parameter("table", {5, 3});
  const at::Tensor tokens = at::tensor({1, 4, 1, 0, 1, 2}, at::kLong).view({2, 3});
  const at::Tensor anchor =
      at::zeros({1}, at::TensorOptions().dtype(at::kDouble)).set_requires_grad(true);
  expect_gradients_match([&] { return embedding(tokens, anchor, *table); }, {}, {table.get()});
}

TEST_F(GradientsAgreeWithFiniteDifferences, OfCrossEntropyWithMaskedTokens) {
  const at::Tensor logits = random_tensor({5, 7});
  const at::Tensor labels = at::tensor({0, 6, 3, 3, 1}, at::kLong);
  const at::Tensor mask = at::tensor({1.0, 0.0, 1.0, 1.0, 0.0}, at::kDouble);
  expect_gradients_match([&] { return cross_entropy_sum(logits, labels, mask); }, {logits}, {});
}

TEST(CrossEntropy, OfEqualLogitsIsLogOfTheVocabularyPerTrainedToken) {
  const at::Tensor logits = at::full({4, 101}, 3.0, at::TensorOptions().dtype(at::kFloat));
  const at::Tensor labels = at::tensor({0, 100, 50, 7}, at::kLong);
  const at::Tensor mask = at::tensor({1.0F, 1.0F, 0.0F, 1.0F});
  const at::Tensor loss = cross_entropy_sum(logits, labels, mask);
  EXPECT_EQ(loss.scalar_type(), at::kDouble);
  EXPECT_NEAR(loss.item<double>(), 3 * std::log(101.0), 1e-5);
}

TEST(CrossEntropy, SurvivesLargeLogits) {
  const at::Tensor logits = at::tensor({800.0, -800.0, 0.0}, at::kDouble).view({1, 3});
  const at::Tensor loss =
      cross_entropy_sum(logits, at::tensor({1}, at::kLong), at::ones({1}, at::kDouble));
  EXPECT_DOUBLE_EQ(loss.item<double>(), 1600.0);
}

}  // namespace
}  // namespace sevenfold

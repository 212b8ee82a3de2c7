// Operations with weights and activations in bf16 and fp16, against the same operation in fp64 on
// the same (rounded) values.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sevenfold/nn/activations.h"
#include "sevenfold/nn/attention.h"
#include "sevenfold/nn/bias.h"
#include "sevenfold/nn/cross_entropy.h"
#include "sevenfold/nn/dropout.h"
#include "sevenfold/nn/embedding.h"
#include "sevenfold/nn/layer_norm.h"
#include "sevenfold/nn/linear.h"
#include "sevenfold/nn/position_embedding.h"
#include "sevenfold/nn/rms_norm.h"
#include "sevenfold/nn/rotary.h"
#include "sevenfold/nn/swiglu.h"
#include "sevenfold/nn/weight_gradients.h"

namespace sevenfold {
namespace {

// What an operation gives for inputs and one parameter of one type.
struct Results {
  std::vector<at::Tensor> values;  // output, gradients of inputs, gradient of the parameter
};

using Operation =
    std::function<at::Tensor(const std::vector<at::Tensor>& inputs, const Parameter& parameter)>;

Results run(const Operation& operation, const std::vector<at::Tensor>& inputs,
            const at::Tensor& weight, at::ScalarType type) {
  Parameter parameter("weight", ParameterKind::kMatrix, replicated_spec(weight.sizes().vec()));
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  parameter.bind(weight.to(type), at::zeros(weight.sizes(), at::TensorOptions().dtype(wide)));
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.to(type).detach().clone().set_requires_grad(true));
  const at::Tensor output = operation(leaves, parameter);
  // The seed's values are exact in every type.
  const at::Tensor seed = at::arange(output.numel(), at::TensorOptions().dtype(at::kDouble))
                              .remainder(5)
                              .sub(2)
                              .view(output.sizes());
  torch::autograd::backward({output}, {seed.to(output.scalar_type())});
  Results results{{output.detach()}};
  for (const at::Tensor& leaf : leaves) results.values.push_back(leaf.grad());
  results.values.push_back(parameter.gradient());
  EXPECT_EQ(parameter.gradient().scalar_type(), wide);
  return results;
}

// Of the largest magnitude: sums of a row or column may cancel. Inputs of every step are rounded to
// the type, and up to three roundings follow one another.
double tolerance(at::ScalarType type) {
  return 3 * (type == at::kBFloat16 ? 0x1p-8 : 0x1p-11);
}

class ElementTypes : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override { at::manual_seed(5); }

  at::Tensor random(at::IntArrayRef sizes) const {  // exact in the type under test
    return at::randn(sizes, at::TensorOptions().dtype(at::kFloat)).to(GetParam()).to(at::kDouble);
  }

  void expect_as_in_fp64(const Operation& operation, const std::vector<at::Tensor>& inputs,
                         const at::Tensor& weight) const {
    const Results expected = run(operation, inputs, weight, at::kDouble);
    const Results actual = run(operation, inputs, weight, GetParam());
    for (size_t i = 0; i < expected.values.size(); ++i) {
      const at::Tensor& wanted = expected.values[i];
      const double largest = wanted.abs().max().item<double>();
      const double error = (actual.values[i].to(at::kDouble) - wanted).abs().max().item<double>();
      EXPECT_LE(error, tolerance(GetParam()) * largest) << "result " << i;
      if (largest > 0) {
        EXPECT_GT(actual.values[i].to(at::kDouble).abs().max().item<double>(), 0.5 * largest);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Narrow, ElementTypes, ::testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& type) { return std::string(at::toString(type.param)); });

// Output and input gradient of two layers that read one input.
std::vector<at::Tensor> linear_products(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                        const std::vector<at::Tensor>& d_outputs,
                                        at::ScalarType type) {
  std::vector<std::unique_ptr<Parameter>> parameters;
  std::vector<Parameter*> list;
  std::vector<at::Tensor> d_narrow, results;
  for (size_t i = 0; i < weights.size(); ++i) {
    parameters.push_back(std::make_unique<Parameter>("weight", ParameterKind::kMatrix,
                                                     replicated_spec(weights[i].sizes().vec())));
    parameters.back()->bind(weights[i].to(type), {});
    list.push_back(parameters.back().get());
    d_narrow.push_back(d_outputs[i].to(type));
    results.push_back(linear_output(x.to(type), *list.back()));
  }
  results.push_back(linear_input_gradient(d_narrow, list));
  return results;
}

TEST_P(ElementTypes, OfLinear) {
  for (const int64_t n : {1, 7, 64}) {
    const at::Tensor x = random({n, 513});
    const std::vector<at::Tensor> weights = {random({17, 513}), random({9, 513})};
    const std::vector<at::Tensor> d_outputs = {random({n, 17}), random({n, 9})};
    const auto wanted = linear_products(x, weights, d_outputs, at::kDouble);
    const auto actual = linear_products(x, weights, d_outputs, GetParam());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(actual[i].scalar_type(), GetParam());
      const double largest = wanted[i].abs().max().item<double>();
      EXPECT_LE((actual[i].to(at::kDouble) - wanted[i]).abs().max().item<double>(),
                tolerance(GetParam()) * largest)
          << "result " << i;
    }
  }
}

TEST_P(ElementTypes, OfLinearAddUpWeightGradientsInFp32) {
  // 1000 micro batches that add 1 to a gradient of 1: bf16 and fp16 sums would stop at 256 and
  // 2048.
  Parameter weight("weight", ParameterKind::kMatrix, replicated_spec({1, 1}));
  weight.bind(at::ones({1, 1}, at::TensorOptions().dtype(GetParam())),
              at::zeros({1, 1}, at::kFloat));
  WeightGradients gradients;
  const at::Tensor one = at::ones({1, 1}, at::TensorOptions().dtype(GetParam()));
  for (int64_t i = 0; i < 3000; ++i) gradients.add({&weight}, {one}, [&] { return one; });
  EXPECT_EQ(weight.gradient().item<float>(), 3000.0F);
}

TEST_P(ElementTypes, OfLinearRoundNothingInTheirWeightGradients) {
  // Products of two 16-bit numbers are exact in fp32: what is left is the rounding of sums of 300.
  const at::Tensor x = random({300, 40}), dy = random({300, 24});
  Parameter weight("weight", ParameterKind::kMatrix, replicated_spec({24, 40}));
  weight.bind(at::zeros({24, 40}, at::TensorOptions().dtype(GetParam())),
              at::ones({24, 40}, at::kFloat));
  WeightGradients gradients;
  gradients.add({&weight}, {dy.to(GetParam())}, [&] { return x.to(GetParam()); });
  const at::Tensor expected = at::mm(dy.t(), x) + 1.0;
  const double scale = at::mm(dy.abs().t(), x.abs()).max().item<double>();
  const at::Tensor error = weight.gradient().to(at::kDouble) - expected;
  EXPECT_LE(error.abs().max().item<double>(), 300 * 0x1p-24 * scale);
}

TEST_P(ElementTypes, OfRmsNorm) {
  expect_as_in_fp64([](const std::vector<at::Tensor>& inputs,
                       const Parameter& gain) { return rms_norm(inputs[0], gain, 1e-5); },
                    {random({7, 33})}, random({33}));
}

// The parameter is the gain, then the bias.
TEST_P(ElementTypes, OfLayerNorm) {
  const at::ScalarType type = GetParam();
  for (const bool checks_bias : {false, true})
    expect_as_in_fp64(
        [&](const std::vector<at::Tensor>& inputs, const Parameter& parameter) {
          static std::vector<std::unique_ptr<Parameter>> others;  // outlive the graphs
          others.push_back(
              std::make_unique<Parameter>("other", ParameterKind::kGain, replicated_spec({33})));
          const bool narrow = parameter.weight().scalar_type() == type;
          others.back()->bind(at::full_like(parameter.weight(), 0.75),
                              at::zeros({33}, narrow ? at::kFloat : at::kDouble));
          return checks_bias ? layer_norm(inputs[0], *others.back(), parameter, 1e-5)
                             : layer_norm(inputs[0], parameter, *others.back(), 1e-5);
        },
        {random({7, 33})}, random({33}));
}

TEST_P(ElementTypes, OfABias) {
  expect_as_in_fp64([](const std::vector<at::Tensor>& inputs,
                       const Parameter& bias) { return add_bias(inputs[0], bias); },
                    {random({40, 33})}, random({33}));
}

TEST_P(ElementTypes, OfLearnedPositions) {
  const at::Tensor reset = at::tensor({0, 1, 0, 1, 4, 0, 3, 2}, at::kLong).view({2, 4});
  for (const at::Tensor& positions : {at::Tensor(), reset})
    expect_as_in_fp64(
        [&](const std::vector<at::Tensor>& inputs, const Parameter& table) {
          return add_position_embedding(inputs[0], table, positions);
        },
        {random({2, 4, 19})}, random({5, 19}));
}

TEST_P(ElementTypes, OfEveryActivation) {
  expect_as_in_fp64(
      [&](const std::vector<at::Tensor>& inputs, const Parameter&) {
        return activate_gated(Activation::kQuickGeglu, inputs[0], inputs[1]);
      },
      {random({5, 13}), random({5, 13})}, at::zeros({1}, at::kDouble));
  for (const Activation activation :
       {Activation::kGelu, Activation::kGeluTanh, Activation::kSquaredRelu})
    expect_as_in_fp64([&](const std::vector<at::Tensor>& inputs,
                          const Parameter&) { return activate(activation, inputs[0]); },
                      {random({5, 13})}, at::zeros({1}, at::kDouble));
}

TEST_P(ElementTypes, OfRotaryEmbedding) {
  for (const int64_t size : {16, 20}) {
    expect_as_in_fp64(
        [&](const std::vector<at::Tensor>& inputs, const Parameter&) {
          static std::vector<std::unique_ptr<RotaryTable>> tables;  // outlive the graphs
          tables.push_back(std::make_unique<RotaryTable>(rotary_table(
              {.length = 9, .head_size = size, .percent = 0.5}, inputs[0].scalar_type())));
          return rotate(inputs[0], *tables.back());
        },
        {random({2, 9, 3, size})}, at::zeros({1}, at::kDouble));
  }
}

TEST_P(ElementTypes, OfCausalAttentionWithDropoutAndDocuments) {
  const Dropout dropped{.rate = 0.25, .site = {.seed = 3}, .faults = {}};
  const at::Tensor first_key =
      at::tensor({0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0}, at::kLong).view({2, 7});
  for (const Dropout* dropout : {static_cast<const Dropout*>(nullptr), &dropped}) {
    expect_as_in_fp64(
        [&](const std::vector<at::Tensor>& inputs, const Parameter&) {
          return causal_attention(
              inputs[0], inputs[1], inputs[2], 0.5,
              {.first_key_BT = first_key, .dropout = dropout, .sample_ids = {4, 9}});
        },
        {random({2, 7, 4, 5}), random({2, 7, 2, 5}), random({2, 7, 2, 5})},
        at::zeros({1}, at::kDouble));
  }
}

TEST_P(ElementTypes, OfDropout) {
  const Dropout dropped{.rate = 0.25, .site = {.seed = 3}, .faults = {}};
  expect_as_in_fp64(
      [&](const std::vector<at::Tensor>& inputs, const Parameter&) {
        return dropout(inputs[0], dropped, {4, 9});
      },
      {random({2, 7, 19})}, at::zeros({1}, at::kDouble));
}

TEST_P(ElementTypes, OfSwiglu) {
  expect_as_in_fp64([](const std::vector<at::Tensor>& inputs,
                       const Parameter&) { return swiglu(inputs[0], inputs[1]); },
                    {random({5, 13}), random({5, 13})}, at::zeros({1}, at::kDouble));
}

TEST_P(ElementTypes, OfEmbeddingWithRepeatedTokens) {
  const at::Tensor tokens = at::tensor({1, 4, 1, 0, 1, 2}, at::kLong).view({2, 3});
  expect_as_in_fp64(
      [&](const std::vector<at::Tensor>&, const Parameter& table) {
        const at::Tensor anchor = at::zeros({1}, at::kFloat).set_requires_grad(true);
        return embedding(tokens, anchor, table);
      },
      {}, random({5, 19}));
}

TEST_P(ElementTypes, OfCrossEntropyWithMaskedTokens) {
  const at::Tensor labels = at::tensor({0, 100, 50, 7, 7}, at::kLong);
  const at::Tensor mask = at::tensor({1.0, 0.0, 1.0, 1.0, 1.0}, at::kDouble);
  expect_as_in_fp64(
      [&](const std::vector<at::Tensor>& inputs, const Parameter&) {
        const at::ScalarType wide =
            inputs[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
        const at::Tensor loss = cross_entropy_sum(inputs[0], labels, mask.to(wide));
        EXPECT_EQ(loss.scalar_type(), at::kDouble);
        return loss;
      },
      {random({5, 101})}, at::zeros({1}, at::kDouble));
}

TEST(CrossEntropy, WritesItsGradientOverTheLogitsButNeverOverALeaf) {
  const at::Tensor labels = at::tensor({2}, at::kLong), mask = at::ones({1}, at::kDouble);
  const at::Tensor leaf = at::randn({1, 5}, at::kDouble).set_requires_grad(true);
  const at::Tensor before = leaf.detach().clone();
  torch::autograd::backward({cross_entropy_sum(leaf, labels, mask)}, {});
  EXPECT_TRUE(at::equal(leaf.detach(), before));

  const at::Tensor expected = leaf.grad().clone();
  const at::Tensor logits = leaf * 1.0;
  torch::autograd::backward({cross_entropy_sum(logits, labels, mask)}, {});
  EXPECT_TRUE(at::equal(logits.detach(), expected));
}

}  // namespace
}  // namespace sevenfold

// Layers of the model family: gradients against central differences, and what each option adds.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "model/model_fixture.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

using testing::BoundModel;
using testing::g0;
using testing::m0;
using testing::small;
using testing::small_microbatch;

struct Kind {
  const char* name;
  ModelConfig config;
};

ModelConfig changed(ModelConfig config, const std::function<void(ModelConfig&)>& change) {
  change(config);
  return config;
}

std::vector<Kind> kinds() {
  return {{"llama", changed(m0(), [](ModelConfig& c) { c.rotary_percent = 0.5; })},
          {"gpt", g0()},
          {"gpt_with_dropout", changed(g0(),
                                       [](ModelConfig& c) {
                                         c.hidden_dropout = 0.2;
                                         c.attention_dropout = 0.3;
                                       })},
          {"qwen2", changed(m0(), [](ModelConfig& c) { c.qkv_bias = true; })},
          {"qwen3", changed(m0(), [](ModelConfig& c) { c.qk_norm = true; })},
          {"gpt_with_norms_of_q_and_k", changed(g0(), [](ModelConfig& c) { c.qk_norm = true; })},
          {"quick_geglu_with_biases", changed(m0(),
                                              [](ModelConfig& c) {
                                                c.activation = Activation::kQuickGeglu;
                                                c.linear_bias = true;
                                              })},
          {"squared_relu_without_positions", changed(m0(), [](ModelConfig& c) {
             c.activation = Activation::kSquaredRelu;
             c.positions = PositionKind::kNone;
           })}};
}

at::Tensor random_hidden() {
  return at::randn({2, 5, 12}, at::TensorOptions(at::kDouble));
}

class LayerGradients : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { at::manual_seed(21); }
};

TEST_P(LayerGradients, OfTheEmbeddingAgreeWithFiniteDifferences) {
  BoundModel model(small(GetParam().config));
  const Microbatch microbatch = small_microbatch();
  testing::expect_gradients_match([&] { return model.run(0, {}, microbatch).boundary.hidden_BTD; },
                                  {}, model.parameters(0));
}

TEST_P(LayerGradients, OfADecoderLayerAgreeWithFiniteDifferences) {
  BoundModel model(small(GetParam().config));
  const Microbatch microbatch = small_microbatch();
  const at::Tensor x = random_hidden();
  testing::expect_gradients_match([&] { return model.run(1, x, microbatch).boundary.hidden_BTD; },
                                  {x}, model.parameters(1));
}

class DocumentGradients : public LayerGradients {};

// Documents of 3 and 2 tokens, and of 1 and 4: positions begin anew, and none sees another.
TEST_P(DocumentGradients, OfADecoderLayerAgreeWithFiniteDifferences) {
  BoundModel model(small(GetParam().config));
  Microbatch microbatch = small_microbatch();
  microbatch.positions_BT = at::tensor({0, 1, 2, 0, 1, 0, 0, 1, 2, 3}, at::kLong).view({2, 5});
  microbatch.first_key_BT = at::tensor({0, 0, 0, 3, 3, 0, 1, 1, 1, 1}, at::kLong).view({2, 5});
  const at::Tensor x = random_hidden();
  testing::expect_gradients_match([&] { return model.run(1, x, microbatch).boundary.hidden_BTD; },
                                  {x}, model.parameters(1));
}

TEST_P(LayerGradients, OfTheHeadAgreeWithFiniteDifferences) {
  BoundModel model(small(GetParam().config));
  const Microbatch microbatch = small_microbatch();
  const at::Tensor x = random_hidden();
  testing::expect_gradients_match([&] { return model.run(2, x, microbatch).losses[0].value; }, {x},
                                  model.parameters(2));
}

std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Kinds, LayerGradients, ::testing::ValuesIn(kinds()), name_of);
INSTANTIATE_TEST_SUITE_P(Kinds, DocumentGradients, ::testing::Values(kinds()[0], kinds()[2]),
                         name_of);

// A document at the end of a row, with positions from 0, is what it is as a row of its own.
TEST(DecoderLayer, TreatsADocumentLikeASequenceOfItsOwn) {
  at::manual_seed(22);
  for (const Kind& kind : {kinds()[0], kinds()[4]}) {
    BoundModel model(small(kind.config));
    const at::NoGradGuard no_graph;
    const at::Tensor x = random_hidden();
    Microbatch packed = small_microbatch();
    packed.positions_BT = at::tensor({0, 1, 0, 1, 2}, at::kLong).repeat({2, 1});
    packed.first_key_BT = at::tensor({0, 0, 2, 2, 2}, at::kLong).repeat({2, 1});
    const at::Tensor together = model.run(1, x, packed).boundary.hidden_BTD.narrow(1, 2, 3);
    const at::Tensor alone =
        model.run(1, x.narrow(1, 2, 3).contiguous(), small_microbatch()).boundary.hidden_BTD;
    EXPECT_LT((together - alone).abs().max().item<double>(), 1e-13) << kind.name;
  }
}

ModelConfig with_dropout() {
  return kinds()[2].config;
}

TEST(LayerDropout, IsOffInEvaluation) {
  at::manual_seed(23);
  BoundModel dropping(small(with_dropout())), plain(small(g0()));
  const at::NoGradGuard no_graph;
  Microbatch training = small_microbatch(), evaluation = small_microbatch();
  evaluation.is_training = false;
  const at::Tensor x = random_hidden();
  for (const size_t layer : {0, 1}) {
    const at::Tensor expected = plain.run(layer, x, training).boundary.hidden_BTD;
    EXPECT_TRUE(at::equal(dropping.run(layer, x, evaluation).boundary.hidden_BTD, expected));
    EXPECT_FALSE(at::equal(dropping.run(layer, x, training).boundary.hidden_BTD, expected));
  }
}

// A sample keeps its masks in whatever row of whatever micro batch it stands.
TEST(LayerDropout, FollowsTheSampleNotTheRow) {
  at::manual_seed(24);
  BoundModel model(small(with_dropout()));
  const at::NoGradGuard no_graph;
  const at::Tensor x = random_hidden();
  Microbatch both = small_microbatch(), second = small_microbatch();
  second.sample_ids = {both.sample_ids[1]};
  const at::Tensor of_two = model.run(1, x, both).boundary.hidden_BTD;
  const at::Tensor of_one = model.run(1, x.narrow(0, 1, 1), second).boundary.hidden_BTD;
  EXPECT_LT((of_two.narrow(0, 1, 1) - of_one).abs().max().item<double>(), 1e-13);
  second.sample_ids = {both.sample_ids[0]};
  const at::Tensor other = model.run(1, x.narrow(0, 1, 1), second).boundary.hidden_BTD;
  EXPECT_GT((of_two.narrow(0, 1, 1) - other).abs().max().item<double>(), 1e-3);
}

TEST(LayerDropout, DiffersFromRunToRun) {
  BoundModel model(small(with_dropout()), {.dtype = at::kDouble, .seed = 1});
  BoundModel other(small(with_dropout()), {.dtype = at::kDouble, .seed = 2});
  const at::NoGradGuard no_graph;
  const Microbatch microbatch = small_microbatch();
  EXPECT_FALSE(at::equal(model.run(0, {}, microbatch).boundary.hidden_BTD,
                         other.run(0, {}, microbatch).boundary.hidden_BTD));
}

// Every bias is added once: with weights 0 only biases are left of a layer's two parts.
TEST(Biases, AreAddedExactlyOnce) {
  ModelConfig config = m0();
  config.linear_bias = true;
  BoundModel model(small(config));
  const at::NoGradGuard no_graph;
  for (const Parameter* parameter : model.parameters(1))
    parameter->weight().fill_(parameter->kind() == ParameterKind::kBias ? 1.0 : 0.0);
  const at::Tensor x = random_hidden();
  const Microbatch microbatch = small_microbatch();
  const auto added = [&] { return model.run(1, x, microbatch).boundary.hidden_BTD - x; };
  EXPECT_LT((added() - 2.0).abs().max().item<double>(), 1e-13);  // o and down

  // The output projections pass on the sum of their inputs: 16 values that are the bias of v, and
  // 10 times silu(bias of gate) * bias of up.
  model.weight("o_proj.weight").fill_(1.0);
  model.weight("down_proj.weight").fill_(1.0);
  const double feed_forward = 10.0 / (1.0 + std::exp(-1.0)) + 1.0;
  EXPECT_LT((added() - (16.0 + 1.0 + feed_forward)).abs().max().item<double>(), 1e-12);
}

}  // namespace
}  // namespace sevenfold

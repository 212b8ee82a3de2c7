#include "sevenfold/model/llama.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/param/start_values.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

// M0 of the field cases; sizes may be changed by the tests.
ModelConfig m0() {
  return {.num_layers = 4,
          .hidden_size = 32,
          .ffn_hidden_size = 64,
          .num_attention_heads = 4,
          .num_query_groups = 2,
          .kv_channels = 8,
          .vocab_size = 101,
          .seq_length = 32,
          .max_position_embeddings = 64};
}

// Binds every parameter by itself, with hot start weights.
void bind_all(ModelPart& part) {
  for (const auto& parameter : part.parameters) {
    const std::vector<int64_t>& shape = parameter->spec().global_shape;
    const at::Tensor weight = at::zeros(shape, at::TensorOptions().dtype(at::kDouble));
    parameter->bind(weight, at::zeros_like(weight));
    fill_start_values(*parameter, {.kind = StartKind::kHot},
                      {std::vector<int64_t>(shape.size(), 0), shape});
  }
}

TEST(Llama, HasTheParametersOfTheFieldCases) {
  EXPECT_EQ(num_parameters(m0()), 43'616);
  ModelConfig tied = m0();
  tied.tied_embeddings = true;
  EXPECT_EQ(num_parameters(tied), 40'384);
  ModelConfig deep = m0();
  deep.num_layers = 8;
  EXPECT_EQ(num_parameters(deep), 80'736);
  for (const ModelConfig& config : {m0(), tied, deep}) {
    int64_t elements = 0;
    for (const auto& parameter : build_llama(config, at::kDouble).parameters)
      elements += parameter->spec().num_elements();
    EXPECT_EQ(elements, num_parameters(config));
  }
}

TEST(Llama, NamesItsParametersCanonically) {
  const ModelPart part = build_llama(m0(), at::kDouble);
  std::vector<std::string> names;
  for (size_t i = 0; i < 10; ++i) names.push_back(part.parameters[i]->name());
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
          "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
          "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.o_proj.weight",
          "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.gate_proj.weight",
          "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight"}));
  EXPECT_EQ(part.parameters.back()->name(), "lm_head.weight");
}

TEST(Llama, TiesTheHeadToTheEmbedding) {
  ModelConfig config = m0();
  config.tied_embeddings = true;
  const ModelPart part = build_llama(config, at::kDouble);
  const auto layers = part.layer_parameters();
  EXPECT_EQ(layers.front().front(), layers.back().back());
}

class LayerGradients : public ::testing::Test {
 protected:
  LayerGradients() {
    at::manual_seed(21);
    config_.hidden_size = 12;
    config_.kv_channels = 3;
    config_.rotary_percent = 0.7;  // two of three components: the rest stays
    config_.ffn_hidden_size = 10;
    config_.num_layers = 1;
    config_.vocab_size = 7;
    config_.seq_length = 5;
    part_ = build_llama(config_, at::kDouble);
    bind_all(part_);
    microbatch_.inputs_BT = at::randint(0, 7, {2, 5}, at::kLong);
    microbatch_.labels_BT = at::randint(0, 7, {2, 5}, at::kLong);
    microbatch_.mask_BT = at::ones({2, 5}, fp64_);
    microbatch_.mask_BT.select(1, 3).zero_();
    microbatch_.loss_seed = at::ones({}, fp64_);
  }

  LayerOutput run(size_t layer, const at::Tensor& hidden) {
    return part_.layers[layer]->forward({.boundary = {hidden},
                                         .anchor = anchor_,
                                         .microbatch = &microbatch_,
                                         .weight_gradients = &gradients_});
  }

  const at::TensorOptions fp64_ = at::TensorOptions().dtype(at::kDouble);
  ModelConfig config_ = m0();
  ModelPart part_;
  Microbatch microbatch_;
  WeightGradients gradients_;
  at::Tensor anchor_ = at::zeros({1}, fp64_).set_requires_grad(true);
};

TEST_F(LayerGradients, OfTheEmbeddingAgreeWithFiniteDifferences) {
  testing::expect_gradients_match([&] { return run(0, {}).boundary.hidden_BTD; }, {},
                                  part_.layers[0]->parameters());
}

TEST_F(LayerGradients, OfADecoderLayerAgreeWithFiniteDifferences) {
  const at::Tensor x = at::randn({2, 5, 12}, fp64_);
  testing::expect_gradients_match([&] { return run(1, x).boundary.hidden_BTD; }, {x},
                                  part_.layers[1]->parameters());
}

TEST_F(LayerGradients, OfTheHeadAgreeWithFiniteDifferences) {
  const at::Tensor x = at::randn({2, 5, 12}, fp64_);
  testing::expect_gradients_match([&] { return run(2, x).losses[0].value; }, {x},
                                  part_.layers[2]->parameters());
}

}  // namespace
}  // namespace sevenfold

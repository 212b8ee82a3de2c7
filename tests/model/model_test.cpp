// Parameters of the model family: names, order, counts.

#include "sevenfold/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_fixture.h"

namespace sevenfold {
namespace {

using testing::g0;
using testing::m0;

ModelConfig qwen3() {
  ModelConfig config = m0();
  config.qk_norm = true;
  return config;
}

ModelConfig qwen2() {
  ModelConfig config = m0();
  config.qkv_bias = true;
  return config;
}

ModelConfig llama_with_biases() {
  ModelConfig config = m0();
  config.linear_bias = true;
  return config;
}

std::vector<std::string> names_of(const ModelConfig& config) {
  std::vector<std::string> names;
  for (const auto& parameter : build_model(config, {}).parameters)
    names.push_back(parameter->name());
  return names;
}

TEST(Model, HasTheParametersOfTheTestModels) {
  EXPECT_EQ(num_parameters(m0()), 43'616);
  ModelConfig tied = m0();
  tied.tied_embeddings = true;
  EXPECT_EQ(num_parameters(tied), 40'384);
  ModelConfig deep = m0();
  deep.num_layers = 8;
  EXPECT_EQ(num_parameters(deep), 80'736);
  EXPECT_EQ(num_parameters(g0()), 55'136);
  EXPECT_EQ(num_parameters(qwen3()), 43'680);
}

// Counts that are published with the weights.
TEST(Model, HasTheParametersOfKnownModels) {
  ModelConfig gpt2 = g0();
  gpt2.num_layers = 12;
  gpt2.hidden_size = 768;
  gpt2.ffn_hidden_size = 3072;
  gpt2.num_attention_heads = gpt2.num_query_groups = 12;
  gpt2.kv_channels = 64;
  gpt2.vocab_size = 50'257;
  gpt2.max_position_embeddings = 1024;
  EXPECT_EQ(num_parameters(gpt2), 124'439'808);

  ModelConfig qwen2_5_7b{.num_layers = 28,
                         .hidden_size = 3584,
                         .ffn_hidden_size = 18'944,
                         .num_attention_heads = 28,
                         .num_query_groups = 4,
                         .kv_channels = 128,
                         .vocab_size = 152'064,
                         .qkv_bias = true};
  EXPECT_EQ(num_parameters(qwen2_5_7b), 7'615'616'512);

  ModelConfig qwen3_8b{.num_layers = 36,
                       .hidden_size = 4096,
                       .ffn_hidden_size = 12'288,
                       .num_attention_heads = 32,
                       .num_query_groups = 8,
                       .kv_channels = 128,
                       .vocab_size = 151'936,
                       .qk_norm = true};
  EXPECT_EQ(num_parameters(qwen3_8b), 8'190'735'360);

  ModelConfig llama3_8b{.num_layers = 32,
                        .hidden_size = 4096,
                        .ffn_hidden_size = 14'336,
                        .num_attention_heads = 32,
                        .num_query_groups = 8,
                        .kv_channels = 128,
                        .vocab_size = 128'256};
  EXPECT_EQ(num_parameters(llama3_8b), 8'030'261'248);
}

TEST(Model, BuildsAsManyParametersAsItCounts) {
  ModelConfig tied = m0();
  tied.tied_embeddings = true;
  ModelConfig squared = g0();
  squared.activation = Activation::kSquaredRelu;
  squared.tied_embeddings = false;
  ModelConfig gpt_with_qk_norm = g0();
  gpt_with_qk_norm.qk_norm = true;
  for (const ModelConfig& config :
       {m0(), tied, g0(), qwen2(), qwen3(), llama_with_biases(), squared, gpt_with_qk_norm}) {
    int64_t elements = 0;
    for (const auto& parameter : build_model(config, {}).parameters)
      elements += parameter->spec().num_elements();
    EXPECT_EQ(elements, num_parameters(config));
  }
}

TEST(Model, ListsEveryParameterInItsLayers) {
  for (const ModelConfig& config : {m0(), g0(), qwen2(), qwen3(), llama_with_biases()}) {
    const ModelPart part = build_model(config, {});
    std::vector<Parameter*> listed;
    for (const auto& layer : part.layer_parameters())
      for (Parameter* parameter : layer)
        if (std::find(listed.begin(), listed.end(), parameter) == listed.end())
          listed.push_back(parameter);
    EXPECT_EQ(listed, part.all_parameters());
  }
}

TEST(Model, NamesTheParametersOfALlamaCanonically) {
  std::vector<std::string> names = names_of(m0());
  EXPECT_EQ(names.back(), "lm_head.weight");
  names.resize(10);
  EXPECT_THAT(
      names,
      ::testing::ElementsAre(
          "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
          "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
          "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.o_proj.weight",
          "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.gate_proj.weight",
          "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight"));
}

TEST(Model, NamesTheParametersOfAGptCanonically) {
  std::vector<std::string> names = names_of(g0());
  EXPECT_EQ(names[names.size() - 2], "model.norm.weight");
  EXPECT_EQ(names.back(), "model.norm.bias");
  names.resize(18);
  EXPECT_THAT(names,
              ::testing::ElementsAre(
                  "model.embed_tokens.weight", "model.embed_positions.weight",
                  "model.layers.0.input_layernorm.weight", "model.layers.0.input_layernorm.bias",
                  "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj.bias",
                  "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.k_proj.bias",
                  "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.v_proj.bias",
                  "model.layers.0.self_attn.o_proj.weight", "model.layers.0.self_attn.o_proj.bias",
                  "model.layers.0.post_attention_layernorm.weight",
                  "model.layers.0.post_attention_layernorm.bias",
                  "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.bias",
                  "model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.down_proj.bias"));
}

TEST(Model, NamesNormsOfQueriesAndKeysAndBiasesOfQwenCanonically) {
  EXPECT_THAT(names_of(qwen3()), ::testing::IsSupersetOf(std::vector<std::string>{
                                     "model.layers.3.self_attn.q_norm.weight",
                                     "model.layers.3.self_attn.k_norm.weight"}));
  EXPECT_THAT(names_of(qwen2()),
              ::testing::IsSupersetOf(std::vector<std::string>{
                  "model.layers.3.self_attn.q_proj.bias", "model.layers.3.self_attn.k_proj.bias",
                  "model.layers.3.self_attn.v_proj.bias"}));
  EXPECT_THAT(names_of(qwen2()),
              ::testing::Not(::testing::Contains("model.layers.3.self_attn.o_proj.bias")));
}

TEST(Model, TiesTheHeadToTheEmbedding) {
  ModelConfig config = m0();
  config.tied_embeddings = true;
  const auto layers = build_model(config, {}).layer_parameters();
  EXPECT_EQ(layers.front().front(), layers.back().back());
}

// Start values follow the kind: tables and matrices init_method_std, output projections a smaller
// one, gains 1, biases 0.
TEST(Model, GivesEachParameterItsKind) {
  for (const auto& parameter : build_model(llama_with_biases(), {}).parameters) {
    const std::string& name = parameter->name();
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    ParameterKind kind = ParameterKind::kMatrix;
    if (has("embed_")) kind = ParameterKind::kTable;
    if (has("norm.weight")) kind = ParameterKind::kGain;
    if (has("o_proj.weight") || has("down_proj.weight")) kind = ParameterKind::kOutputMatrix;
    if (has(".bias")) kind = ParameterKind::kBias;
    EXPECT_EQ(parameter->kind(), kind) << name;
  }
  EXPECT_EQ(build_model(g0(), {}).parameters[1]->kind(), ParameterKind::kTable);
}

}  // namespace
}  // namespace sevenfold

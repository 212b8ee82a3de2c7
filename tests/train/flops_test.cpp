#include "sevenfold/train/flops.h"

#include <gtest/gtest.h>

namespace sevenfold {
namespace {

// The small test model M0.
ModelConfig small_llama() {
  ModelConfig model;
  model.num_layers = 4;
  model.hidden_size = 32;
  model.ffn_hidden_size = 64;
  model.num_attention_heads = 4;
  model.num_query_groups = 2;
  model.kv_channels = 8;
  model.vocab_size = 101;
  model.seq_length = 32;
  return model;
}

TEST(Flops, CountsEveryProductOfASmallLlama) {
  // A layer: q and o 32 x 32, k and v 32 x 16, three of 32 x 64, scores and values 32 tokens x 32.
  constexpr double kLayer = 2 * (2 * 1024 + 2 * 512 + 3 * 2048) + 4 * 32 * 32;
  constexpr double kHead = 2 * 32 * 101;
  EXPECT_EQ(forward_flops_per_token(small_llama()), 4 * kLayer + kHead);
  EXPECT_EQ(step_flops(small_llama(), 8), 3.0 * 8 * 32 * (4 * kLayer + kHead));
}

TEST(Flops, CountTheHeadOfATiedModelToo) {
  ModelConfig tied = small_llama();
  tied.tied_embeddings = true;
  EXPECT_EQ(step_flops(tied, 8), step_flops(small_llama(), 8));
}

// Without a gate the feed-forward part has two matrices.
TEST(Flops, CountTwoFeedForwardMatricesWithoutAGate) {
  ModelConfig gpt = small_llama();
  gpt.activation = Activation::kGelu;
  EXPECT_EQ(forward_flops_per_token(small_llama()) - forward_flops_per_token(gpt),
            4 * 2 * 32.0 * 64);
}

// Hardware FLOPs add the forward of what runs again: all layers, or two of four.
TEST(Flops, CountRecomputedLayersApart) {
  Config config;
  config.model = small_llama();
  const double model = step_flops(config.model, 8);
  EXPECT_EQ(hardware_step_flops(config, 8), model);
  constexpr double kLayer = 2 * (2 * 1024 + 2 * 512 + 3 * 2048) + 4 * 32 * 32;
  config.recompute = {.layers = RecomputedLayers::kUniform, .num_layers = 3};
  EXPECT_EQ(hardware_step_flops(config, 8), model + 8 * 32 * 4 * kLayer);
  config.recompute = {.layers = RecomputedLayers::kBlock, .num_layers = 2};
  EXPECT_EQ(hardware_step_flops(config, 8), model + 8 * 32 * 2 * kLayer);
  config.recompute = {.layers = RecomputedLayers::kNamed, .layer_ids = {0, 3}};
  EXPECT_EQ(hardware_step_flops(config, 8), model + 8 * 32 * 2 * kLayer);
  EXPECT_EQ(step_flops(config.model, 8), model);
}

TEST(Flops, CountRecomputedPartsApart) {
  Config config;
  config.model = small_llama();
  const double model = step_flops(config.model, 8);
  constexpr double kTokens = 8 * 32, kLayers = 4;
  config.recompute = {.norms = true, .activation = true};
  EXPECT_EQ(hardware_step_flops(config, 8), model);
  config.recompute = {.core_attention = true};
  EXPECT_EQ(hardware_step_flops(config, 8), model + kTokens * kLayers * 4 * 32 * 32);
  config.recompute = {.feed_forward = true};
  EXPECT_EQ(hardware_step_flops(config, 8), model + kTokens * kLayers * 2 * 3 * 2048);
}

TEST(Flops, HoldTheLargestRuns) {
  // Llama 3.1 405B, 16 Mi tokens: about 6 FLOPs a parameter and token, and a fifth more for
  // attention.
  ModelConfig model;
  model.num_layers = 126;
  model.hidden_size = 16384;
  model.ffn_hidden_size = 53248;
  model.num_attention_heads = 128;
  model.num_query_groups = 8;
  model.kv_channels = 128;
  model.vocab_size = 128256;
  model.seq_length = 8192;
  const double by_parameters = 6.0 * 405e9 * 2048 * 8192;
  EXPECT_NEAR(step_flops(model, 2048) / by_parameters, 1.08, 0.01);
}

}  // namespace
}  // namespace sevenfold

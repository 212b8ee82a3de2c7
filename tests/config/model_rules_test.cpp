// What a model is made of, from its keys.

#include <gmock/gmock.h>

#include "config/experiment_files.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ModelConfig model_of(std::vector<std::string> words) {
  const Config config = load_text(small_llama(), std::move(words));
  for (const Unsupported& item : config.unsupported) ADD_FAILURE() << item.text;
  return config.model;
}

TEST(BlockRule, ReadsTheNorm) {
  EXPECT_EQ(model_of({}).norm, NormKind::kRmsNorm);
  EXPECT_EQ(model_of({"normalization=LayerNorm"}).norm, NormKind::kLayerNorm);
  EXPECT_EQ(rule_of(small_llama(), {"normalization=BatchNorm"}),
            "model.norm config: override normalization=BatchNorm is not a norm; use RMSNorm or "
            "LayerNorm");
}

TEST(BlockRule, ReadsTheActivation) {
  EXPECT_EQ(model_of({}).activation, Activation::kSwiglu);
  EXPECT_EQ(model_of({"swiglu=false"}).activation, Activation::kGelu);
  EXPECT_EQ(model_of({"swiglu=false", "quick_geglu=true"}).activation, Activation::kQuickGeglu);
  EXPECT_EQ(model_of({"swiglu=false", "openai_gelu=true"}).activation, Activation::kGeluTanh);
  EXPECT_EQ(model_of({"swiglu=false", "squared_relu=true"}).activation, Activation::kSquaredRelu);
  EXPECT_EQ(rule_of(small_llama(), {"squared_relu=true"}),
            "model.activation config: override squared_relu=true: swiglu=true is set too, and an "
            "MLP has one activation; use swiglu=false");
  EXPECT_EQ(model_of({"swiglu=false", "ffn_hidden_size=null"}).ffn_hidden_size, 4 * 32);
}

TEST(BlockRule, ReadsBiasesAndTheNormOfQueriesAndKeys) {
  EXPECT_FALSE(model_of({}).linear_bias || model_of({}).qkv_bias || model_of({}).qk_norm);
  EXPECT_TRUE(model_of({"add_qkv_bias=true"}).qkv_bias);
  EXPECT_FALSE(model_of({"add_qkv_bias=true"}).linear_bias);
  EXPECT_TRUE(model_of({"add_bias_linear=true"}).qkv_bias) << "implied";
  EXPECT_TRUE(model_of({"qk_layernorm=true"}).qk_norm);
  EXPECT_TRUE(model_of({"qk_layernorm=true", "normalization=LayerNorm"}).qk_norm);
}

TEST(BlockRule, ReadsThePositions) {
  EXPECT_EQ(model_of({}).positions, PositionKind::kRotary);
  EXPECT_EQ(model_of({"position_embedding_type=learned_absolute"}).positions,
            PositionKind::kLearned);
  EXPECT_EQ(model_of({"position_embedding_type=none"}).positions, PositionKind::kNone);
  EXPECT_EQ(
      model_of({"position_embedding_type=none", "use_rotary_position_embeddings=true"}).positions,
      PositionKind::kRotary);
  EXPECT_THAT(rule_of(small_llama(), {"position_embedding_type=alibi"}),
              StartsWith("model.positions config: override position_embedding_type=alibi"));
}

TEST(BlockRule, LeavesRotaryKeysAloneWithoutRotation) {
  EXPECT_THAT(rule_of(small_llama(), {"kv_channels=5"}), StartsWith("rotary.even "));
  EXPECT_EQ(rule_of(small_llama(), {"kv_channels=5", "position_embedding_type=none"}), "");
}

TEST(BlockRule, ReadsTheRotation) {
  const ModelConfig model = model_of({"rotary_percent=0.5", "rotary_interleaved=true",
                                      "rotary_seq_len_interpolation_factor=4", "rotary_base=500"});
  EXPECT_EQ(model.rotary_percent, 0.5);
  EXPECT_TRUE(model.rotary_interleaved);
  EXPECT_EQ(model.rotary_interpolation, 4.0);
  EXPECT_EQ(model.rotary_base, 500.0);
  EXPECT_FALSE(model.rope_scaling.has_value());
  EXPECT_EQ(model_of({}).rotary_interpolation, 1.0);
  EXPECT_THAT(rule_of(small_llama(), {"rotary_seq_len_interpolation_factor=0"}),
              StartsWith("model.range "));
}

TEST(BlockRule, ReadsTheScalingOfLlama3) {
  const auto scaling = model_of({"use_rope_scaling=true"}).rope_scaling;
  ASSERT_TRUE(scaling.has_value());
  EXPECT_EQ(scaling->factor, 8.0);
  EXPECT_EQ(scaling->low_frequency_factor, 1.0);
  EXPECT_EQ(scaling->high_frequency_factor, 4.0);
  EXPECT_EQ(scaling->original_max_position_embeddings, 8192) << "where the key is absent";
  const auto other = model_of({"use_rope_scaling=true", "rope_scaling_factor=16",
                               "original_max_position_embeddings=16"})
                         .rope_scaling;
  EXPECT_EQ(other->factor, 16.0);
  EXPECT_EQ(other->original_max_position_embeddings, 16);
}

TEST(BlockRule, ReadsDropout) {
  const ModelConfig model = model_of({"hidden_dropout=0.25", "attention_dropout=0.5"});
  EXPECT_EQ(model.hidden_dropout, 0.25);
  EXPECT_EQ(model.attention_dropout, 0.5);
  for (const char* word : {"hidden_dropout=1.0", "attention_dropout=-0.1"})
    EXPECT_THAT(rule_of(small_llama(), {word}),
                StartsWith("model.range config: override " + std::string(word)));
}

TEST(BlockRule, AcceptsKernelChoices) {
  for (const char* word :
       {"bias_gelu_fusion=false", "gradient_accumulation_fusion=true", "apply_rope_fusion=false",
        "cross_entropy_fusion_impl=te", "attention_backend=flash"}) {
    const Config config = load_text(small_llama(), {word});
    EXPECT_TRUE(config.unsupported.empty()) << word;
    EXPECT_EQ(config.ignored.size(), 1u) << word;
  }
}

struct Padding {
  int64_t words, divisor, tp, padded;
};

TEST(Vocabulary, IsPaddedForEveryTensorParallelRank) {
  constexpr Padding kCases[] = {{101, 8, 1, 104},         {101, 8, 2, 112},
                                {101, 8, 4, 128},         {101, 1, 1, 101},
                                {50'257, 128, 1, 50'304}, {50'257, 128, 2, 50'432}};
  for (const Padding& c : kCases) {
    const Config config =
        load_text(small_llama(), {"vocab_size=" + std::to_string(c.words),
                                  "make_vocab_size_divisible_by=" + std::to_string(c.divisor),
                                  "tensor_model_parallel_size=" + std::to_string(c.tp)});
    EXPECT_EQ(config.model.padded_vocab_size, c.padded)
        << c.words << " " << c.divisor << " " << c.tp;
    EXPECT_EQ(config.model.vocab_size, c.words);
  }
}

}  // namespace
}  // namespace sevenfold

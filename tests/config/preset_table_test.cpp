// The shapes of Primus's megatron presets, written down from its documentation, against the
// built-in presets.

#include <gtest/gtest.h>

#include "config/experiment_files.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/config/rules/layer_pattern.h"

namespace sevenfold::config {
namespace {

// Absent numbers (null, or one group per head) are -1.
struct Shape {
  const char* preset;
  int64_t layers, hidden, ffn, heads, groups, head_size, max_positions;
  double rotary_base, norm_epsilon, init_std;
  bool qk_norm;
  const char* tokenizer;
};

constexpr Shape kShapes[] = {
    {"llama2_7B", 32, 4096, 11008, 32, -1, 128, 4096, 10000, 1e-05, 0.02, false, "Llama2Tokenizer"},
    {"llama2_13B", 40, 5120, 13824, 40, -1, 128, 4096, 10000, 1e-05, 0.02, false,
     "Llama2Tokenizer"},
    {"llama2_70B", 80, 8192, 28672, 64, 8, 128, 4096, 10000, 1e-05, 0.02, false, "Llama2Tokenizer"},
    {"llama3_8B", 32, 4096, 14336, 32, 8, 128, 8192, 500000, 1e-05, 0.02, false,
     "HuggingFaceTokenizer"},
    {"llama3_70B", 80, 8192, 28672, 64, 8, 128, 8192, 500000, 1e-05, 0.02, false,
     "Llama3Tokenizer"},
    {"llama3.1_8B", 32, 4096, 14336, 32, 8, 128, 131072, 500000, 1e-05, 0.02, false,
     "HuggingFaceTokenizer"},
    {"llama3.1_70B", 80, 8192, 28672, 64, 8, 128, 131072, 500000, 1e-05, 0.02, false,
     "Llama3Tokenizer"},
    {"llama3.1_405B", 126, 16384, 53248, 128, 8, 128, 8192, 500000, 1e-05, 0.02, false,
     "Llama3Tokenizer"},
    {"llama3.2_1B", 16, 2048, 8192, 32, 8, 64, 8192, 500000, 1e-05, 0.02, false, "Llama3Tokenizer"},
    {"llama3.2_3B", 28, 3072, 8192, 24, 8, 128, 8192, 500000, 1e-05, 0.02, false,
     "Llama3Tokenizer"},
    {"llama3.3_70B", 80, 8192, 28672, 64, 8, 128, 131072, 500000, 1e-05, 0.02, false,
     "Llama3Tokenizer"},
    {"qwen2.5_3B", 36, 2048, 11008, 16, 2, 128, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen2.5_7B", 28, 3584, 18944, 28, 4, 128, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen2.5_14B", 48, 5120, 13824, 40, 8, 128, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen2.5_32B", 64, 5120, 27648, 40, 8, 128, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen2.5_72B", 80, 8192, 29568, 64, 8, 128, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen3_4B", 36, 2560, 9728, 32, 8, 80, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen3_8B", 36, 4096, 12288, 32, 8, 128, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen3_14B", 40, 5120, 17408, 40, 8, 128, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"qwen3_32B", 64, 5120, 25600, 64, 8, 80, 131072, 1000000, 1e-06, 0.008, false,
     "HuggingFaceTokenizer"},
    {"llama4_17B16E", 48, 5120, 16384, 40, 8, 128, 262144, 500000, 1e-05, 0.01, true,
     "Llama4Tokenizer"},
    {"llama4_17B128E", 48, 5120, 16384, 40, 8, 128, 262144, 500000, 1e-05, 0.01, false,
     "Llama4Tokenizer"},
    {"mixtral_8x7B_v0.1", 32, 4096, 14336, 32, 8, 128, 4096, 1000000, 1e-05, 0.01, false,
     "MixtralTokenizer"},
    {"mixtral_8x22B_v0.1", 56, 6144, 16384, 48, 8, 128, 65536, 1000000, 1e-05, 0.01, false,
     "MixtralTokenizer"},
    {"deepseek_v2_lite", 27, 2048, 10944, 16, -1, 128, -1, 10000, 1e-06, 0.02, true,
     "HuggingFaceTokenizer"},
    {"deepseek_v2", 60, 5120, 12288, 128, -1, 128, -1, 10000, 1e-06, 0.02, true,
     "DeepSeekV2Tokenizer"},
    {"deepseek_v3", 61, 7168, 18432, 128, -1, 128, -1, 10000, 1e-06, 0.02, true,
     "DeepSeekV3Tokenizer"},
    {"kimi_k2", 61, 7168, 18432, 64, -1, 128, -1, 10000, 1e-06, 0.02, true, "KimiK2Tokenizer"},
    {"qwen3_30B_A3B", 48, 2048, 6144, 32, 4, 128, 131072, 1000000, 1e-06, 0.008, true,
     "HuggingFaceTokenizer"},
    {"qwen3_235B_A22B", 94, 4096, 12288, 64, 4, 128, 131072, 1000000, 1e-06, 0.008, true,
     "HuggingFaceTokenizer"},
    {"grok1", 64, 6144, 32768, 48, 8, 128, 131072, 1000000, 1e-05, 0.01, false, "MixtralTokenizer"},
    {"grok2", 64, 8192, -1, 64, 8, 128, 131072, 1000000, 1e-05, 0.01, false, "MixtralTokenizer"},
    {"gpt_oss_20B", 24, 2880, 10944, 64, 8, 64, -1, 10000, 1e-06, 0.02, true,
     "DeepSeekV2Tokenizer"},
    {"gpt_oss_120B", 36, 2880, 10944, 64, 8, 64, -1, 10000, 1e-06, 0.02, true,
     "DeepSeekV2Tokenizer"},
};

// "" is null.
struct Experts {
  const char* preset;
  int64_t experts, topk, ffn, shared_ffn;
  const char* pattern;
  const char* score;
  bool pre_softmax;
  int64_t groups, group_topk;
  double scale;  // -1: null
  bool bias;
  const char* balancing;
  double coefficient;
  const char* dispatcher;
  int64_t expert_parallel;
};

constexpr Experts kExperts[] = {
    {"llama4_17B16E", 16, 1, 8192, 8192, "1", "softmax", true, -1, -1, -1, false, "aux_loss", 0.001,
     "alltoall", 8},
    {"llama4_17B128E", 128, 1, 8192, 8192, "2", "softmax", true, -1, -1, -1, false, "aux_loss",
     0.001, "alltoall", 8},
    {"mixtral_8x7B_v0.1", 8, 2, -1, -1, "1", "softmax", false, -1, -1, -1, false, "aux_loss", 0.01,
     "alltoall", 1},
    {"mixtral_8x22B_v0.1", 8, 2, -1, -1, "1", "softmax", false, -1, -1, -1, false, "aux_loss", 0.01,
     "alltoall", 1},
    {"deepseek_v2_lite", 64, 6, 1408, 2816, "([0]*1+[1]*26)", "softmax", true, -1, -1, 1.0, false,
     "seq_aux_loss", 0.001, "alltoall", 8},
    {"deepseek_v2", 160, 6, 1536, 3072, "([0]*1+[1]*59)", "softmax", true, 8, 3, 16.0, false,
     "seq_aux_loss", 0.001, "alltoall", 8},
    {"deepseek_v3", 256, 8, 2048, 2048, "([0]*3+[1]*58)", "sigmoid", false, 8, 4, 2.5, true,
     "seq_aux_loss", 0.001, "alltoall", 8},
    {"kimi_k2", 384, 8, 2048, 2048, "([0]*1+[1]*60)", "sigmoid", false, -1, -1, 1.0, true,
     "seq_aux_loss", 0.001, "alltoall", 1},
    {"qwen3_30B_A3B", 128, 8, 768, -1, "1", "softmax", false, -1, -1, -1, false, "aux_loss", 0.0,
     "alltoall", 1},
    {"qwen3_235B_A22B", 128, 8, 1536, -1, "1", "softmax", false, -1, -1, -1, false, "aux_loss", 0.0,
     "alltoall", 1},
    {"grok1", 8, 2, -1, -1, "1", "softmax", false, -1, -1, -1, false, "none", 0.01, "alltoall", 1},
    {"grok2", 8, 2, 16384, -1, "1", "softmax", false, -1, -1, -1, false, "none", 0.01, "alltoall",
     1},
    {"gpt_oss_20B", 32, 4, 2880, 2880, "1", "softmax", true, -1, -1, 1.0, false, "seq_aux_loss",
     0.001, "alltoall", 8},
    {"gpt_oss_120B", 128, 4, 2880, 2880, "1", "softmax", true, -1, -1, 1.0, false, "seq_aux_loss",
     0.001, "alltoall", 8},
};

Parameters parameters_of(const std::string& preset) {
  std::string text = small_llama();
  text.replace(text.find("llama2_7B"), 9, preset);
  text.erase(text.find("    overrides:"));
  return Parameters(load_raw(text).parameters);
}

int64_t or_none(const Parameters& parameters, const char* key) {
  return parameters.optional_integer(key).value_or(-1);
}

class PresetShape : public testing::TestWithParam<Shape> {};

TEST_P(PresetShape, IsThatOfPrimus) {
  const Shape& shape = GetParam();
  const Parameters parameters = parameters_of(shape.preset);
  EXPECT_EQ(parameters.integer("num_layers"), shape.layers);
  EXPECT_EQ(parameters.integer("hidden_size"), shape.hidden);
  EXPECT_EQ(or_none(parameters, "ffn_hidden_size"), shape.ffn);
  EXPECT_EQ(parameters.integer("num_attention_heads"), shape.heads);
  EXPECT_EQ(
      parameters.boolean("group_query_attention") ? or_none(parameters, "num_query_groups") : -1,
      shape.groups);
  EXPECT_EQ(parameters.optional_integer("kv_channels").value_or(shape.hidden / shape.heads),
            shape.head_size);
  EXPECT_EQ(or_none(parameters, "max_position_embeddings"), shape.max_positions);
  EXPECT_EQ(parameters.number("rotary_base"), shape.rotary_base);
  EXPECT_EQ(parameters.number("norm_epsilon"), shape.norm_epsilon);
  EXPECT_EQ(parameters.number("init_method_std"), shape.init_std);
  EXPECT_EQ(parameters.boolean("qk_layernorm"), shape.qk_norm);
  EXPECT_EQ(parameters.string("tokenizer_type"), shape.tokenizer);
}

// All of them: RMSNorm, SwiGLU, no linear bias, rotary positions, untied tables, no dropout.
TEST_P(PresetShape, IsOfTheLlamaFamily) {
  const Parameters parameters = parameters_of(GetParam().preset);
  EXPECT_EQ(parameters.string("normalization"), "RMSNorm");
  EXPECT_TRUE(parameters.boolean("swiglu"));
  EXPECT_FALSE(parameters.boolean("add_bias_linear"));
  EXPECT_EQ(parameters.string("position_embedding_type"), "rope");
  EXPECT_EQ(parameters.number("rotary_percent"), 1.0);
  EXPECT_TRUE(parameters.boolean("untie_embeddings_and_output_weights"));
  EXPECT_EQ(parameters.number("hidden_dropout"), 0.0);
  EXPECT_EQ(parameters.number("attention_dropout"), 0.0);
  EXPECT_TRUE(parameters.boolean("attention_softmax_in_fp32"));
  EXPECT_TRUE(parameters.is_null("vocab_size"));
}

std::string name_of(const std::string& preset) {
  std::string name;
  for (const char c : preset) name += c == '.' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Primus, PresetShape, testing::ValuesIn(kShapes),
                         [](const auto& shape) { return name_of(shape.param.preset); });

class PresetExperts : public testing::TestWithParam<Experts> {};

TEST_P(PresetExperts, AreThoseOfPrimus) {
  const Experts& experts = GetParam();
  const Parameters parameters = parameters_of(experts.preset);
  EXPECT_EQ(parameters.integer("num_experts"), experts.experts);
  EXPECT_EQ(parameters.integer("moe_router_topk"), experts.topk);
  EXPECT_EQ(or_none(parameters, "moe_ffn_hidden_size"), experts.ffn);
  EXPECT_EQ(or_none(parameters, "moe_shared_expert_intermediate_size"), experts.shared_ffn);
  EXPECT_EQ(brief(*evaluate_layer_pattern(parameters.at("moe_layer_freq").text)),
            brief(*evaluate_layer_pattern(experts.pattern)));
  EXPECT_EQ(parameters.string("moe_router_score_function"), experts.score);
  EXPECT_EQ(parameters.boolean("moe_router_pre_softmax"), experts.pre_softmax);
  EXPECT_EQ(or_none(parameters, "moe_router_num_groups"), experts.groups);
  EXPECT_EQ(or_none(parameters, "moe_router_group_topk"), experts.group_topk);
  EXPECT_EQ(parameters.optional_number("moe_router_topk_scaling_factor").value_or(-1.0),
            experts.scale);
  EXPECT_EQ(parameters.boolean("moe_router_enable_expert_bias"), experts.bias);
  EXPECT_EQ(parameters.at("moe_router_load_balancing_type").text, experts.balancing);
  EXPECT_EQ(parameters.at("moe_aux_loss_coeff").number, experts.coefficient);
  EXPECT_EQ(parameters.string("moe_token_dispatcher_type"), experts.dispatcher);
  EXPECT_EQ(parameters.integer("expert_model_parallel_size"), experts.expert_parallel);
}

INSTANTIATE_TEST_SUITE_P(Primus, PresetExperts, testing::ValuesIn(kExperts),
                         [](const auto& experts) { return name_of(experts.param.preset); });

TEST(LatentAttention, HasTheSizesOfDeepSeek) {
  for (const char* preset : {"deepseek_v2_lite", "deepseek_v2", "deepseek_v3", "kimi_k2"}) {
    SCOPED_TRACE(preset);
    const Parameters parameters = parameters_of(preset);
    const bool is_v2 = std::string_view(preset).find("v2") != std::string_view::npos;
    EXPECT_TRUE(parameters.boolean("multi_latent_attention"));
    EXPECT_EQ(parameters.integer("kv_lora_rank"), 512);
    EXPECT_EQ(parameters.integer("qk_head_dim"), 128);
    EXPECT_EQ(parameters.integer("qk_pos_emb_head_dim"), 64);
    EXPECT_EQ(parameters.integer("v_head_dim"), 128);
    EXPECT_EQ(or_none(parameters, "q_lora_rank"),
              std::string_view(preset) == "deepseek_v2_lite" ? -1 : 1536);
    EXPECT_EQ(parameters.number("rotary_scaling_factor"), 40.0);
    EXPECT_EQ(parameters.integer("original_max_position_embeddings"), 4096);
    EXPECT_EQ(parameters.number("mscale"), is_v2 ? 0.707 : 1.0);
    EXPECT_EQ(parameters.number("mscale_all_dim"), is_v2 ? 0.707 : 1.0);
  }
  EXPECT_EQ(parameters_of("deepseek_v3").integer("mtp_num_layers"), 1);
  EXPECT_EQ(parameters_of("kimi_k2").integer("mtp_num_layers"), 0);
}

TEST(RopeScaling, IsOnInTheSmallLlama4Alone) {
  EXPECT_TRUE(parameters_of("llama4_17B16E").boolean("use_rope_scaling"));
  EXPECT_EQ(parameters_of("llama4_17B16E").number("rope_scaling_factor"), 16.0);
  EXPECT_FALSE(parameters_of("llama3.1_8B").boolean("use_rope_scaling"));
}

}  // namespace
}  // namespace sevenfold::config

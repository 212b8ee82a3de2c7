#include "sevenfold/config/torchtitan/flavors.h"

#include <vector>

namespace sevenfold::config {
namespace {

constexpr int64_t kLlamaVocabulary = 128256;
constexpr int64_t kQwenVocabulary = 151936;

constexpr std::string_view kQwenFields =
    "dim, n_layers, n_heads, n_kv_heads, head_dim, hidden_dim, vocab_size, rope_theta, norm_eps, "
    "qk_norm, enable_weight_tying, max_seq_len, depth_init, use_flex_attn, attn_type, "
    "attn_mask_type, eos_id, moe_inter_dim or moe_args";

constexpr Family kFamilies[] = {
    {.name = "llama3",
     .fields = "dim, n_layers, n_heads, n_kv_heads, ffn_dim_multiplier, multiple_of, vocab_size, "
               "rope_theta, norm_eps, enable_weight_tying, max_seq_len, depth_init, "
               "use_flex_attn, attn_type, attn_mask_type or eos_id",
     .rotates_neighbours = true,
     .scales_rotary = true},
    {.name = "qwen3", .fields = kQwenFields, .norm_epsilon = 1e-6, .qk_norm = true},
    {.name = "deepseek_v3",
     .fields = "dim, n_layers, n_heads, inter_dim, moe_inter_dim, n_dense_layers, vocab_size, "
               "rope_theta, norm_eps, max_seq_len, moe_args, q_lora_rank, kv_lora_rank, "
               "qk_nope_head_dim, qk_rope_head_dim, v_head_dim, mscale, use_flex_attn, attn_type "
               "or attn_mask_type"},
};

constexpr Flavor llama(std::string_view name, int64_t layers, int64_t dim, int64_t heads,
                       int64_t kv_heads) {
  return {.family = "llama3",
          .name = name,
          .layers = layers,
          .dim = dim,
          .heads = heads,
          .kv_heads = kv_heads,
          .vocab = kLlamaVocabulary,
          .rope_theta = 500000.0};
}

constexpr Flavor with_ffn(Flavor flavor, double multiplier, int64_t multiple_of) {
  flavor.ffn_multiplier = multiplier;
  flavor.multiple_of = multiple_of;
  return flavor;
}

constexpr Flavor qwen(std::string_view name, int64_t layers, int64_t dim, int64_t ffn,
                      int64_t heads, int64_t kv_heads) {
  return {.family = "qwen3",
          .name = name,
          .layers = layers,
          .dim = dim,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = 128,
          .ffn = ffn,
          .vocab = kQwenVocabulary,
          .rope_theta = 1e6};
}

constexpr Flavor deepseek(std::string_view name, int64_t layers, int64_t dim, int64_t ffn,
                          int64_t heads, const Experts& experts) {
  return {.family = "deepseek_v3",
          .name = name,
          .layers = layers,
          .dim = dim,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = 128,
          .ffn = ffn,
          .vocab = 102400,
          .rope_theta = 10000.0,
          .experts = experts};
}

constexpr Flavor tied(Flavor flavor) {
  flavor.is_tied = true;
  return flavor;
}

constexpr Flavor with_vocabulary(Flavor flavor, int64_t size) {
  flavor.vocab = size;
  return flavor;
}

constexpr Flavor with_experts(Flavor flavor, const Experts& experts, double rope_theta) {
  flavor.experts = experts;
  flavor.rope_theta = rope_theta;
  return flavor;
}

const std::vector<Flavor>& flavors() {
  static const std::vector<Flavor> kFlavors = {
      with_vocabulary(llama("debugmodel", 6, 256, 16, 16), 2048),
      tied(with_ffn(llama("1B", 16, 2048, 32, 8), 1.5, 256)),
      tied(with_ffn(llama("3B", 28, 3072, 24, 8), 1.0, 256)),
      with_ffn(llama("8B", 32, 4096, 32, 8), 1.3, 1024),
      with_ffn(llama("70B", 80, 8192, 64, 8), 1.3, 4096),
      with_ffn(llama("405B", 126, 16384, 128, 8), 1.2, 4096),
      tied(with_vocabulary(qwen("debugmodel", 8, 256, 3072, 16, 8), 2048)),
      tied(qwen("0.6B", 28, 1024, 3072, 16, 8)),
      tied(qwen("1.7B", 28, 2048, 6144, 16, 8)),
      tied(qwen("4B", 36, 2560, 9728, 32, 8)),
      qwen("8B", 36, 4096, 12288, 32, 8),
      qwen("14B", 40, 5120, 17408, 40, 8),
      qwen("32B", 64, 5120, 25600, 64, 8),
      with_experts(qwen("30B-A3B", 48, 2048, 6144, 32, 4), {.num = 128, .top_k = 8, .ffn = 768},
                   1e6),
      with_experts(qwen("235B-A22B", 94, 4096, 12288, 64, 4), {.num = 128, .top_k = 8, .ffn = 1536},
                   5e6),
      deepseek("16B", 27, 2048, 10944, 16,
               {.num = 64, .top_k = 6, .ffn = 1408, .shared = 2, .dense_layers = 1}),
      deepseek("236B", 60, 5120, 12288, 128,
               {.num = 160,
                .top_k = 6,
                .ffn = 1536,
                .shared = 2,
                .dense_layers = 1,
                .groups = 8,
                .chosen_groups = 3,
                .scale = 16.0}),
      with_vocabulary(deepseek("671B", 61, 7168, 18432, 128,
                               {.num = 256,
                                .top_k = 8,
                                .ffn = 2048,
                                .shared = 1,
                                .dense_layers = 3,
                                .groups = 8,
                                .chosen_groups = 4,
                                .score = "sigmoid",
                                .scale = 2.5}),
                      129280),
  };
  return kFlavors;
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += std::string(i == 0                  ? ""
                        : i + 1 == names.size() ? " or "
                                                : ", ") +
            std::string(names[i]);
  return text;
}

}  // namespace

const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

const Flavor* find_flavor(std::string_view family, std::string_view name) {
  for (const Flavor& flavor : flavors())
    if (flavor.family == family && flavor.name == name) return &flavor;
  return nullptr;
}

std::string family_names() {
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return listed(names);
}

std::string flavor_names(std::string_view family) {
  std::vector<std::string_view> names;
  for (const Flavor& flavor : flavors())
    if (flavor.family == family) names.push_back(flavor.name);
  return listed(names);
}

int64_t llama_ffn(int64_t dim, double multiplier, int64_t multiple_of) {
  auto width = 8 * dim / 3;
  if (multiplier > 0.0) width = static_cast<int64_t>(multiplier * static_cast<double>(width));
  return (width + multiple_of - 1) / multiple_of * multiple_of;
}

}  // namespace sevenfold::config

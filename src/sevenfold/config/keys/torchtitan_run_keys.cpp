#include "sevenfold/config/keys/key_tables.h"

// The torchtitan vocabulary: what the run is. Names are dotted: parallelism.tensor_parallel_degree
// is tensor_parallel_degree in the map parallelism.

namespace sevenfold::config {
namespace {

using enum KeyType;
using enum KeyStatus;

constexpr std::string_view kExperts = "acts only in a model with experts";
constexpr std::string_view kSame = "the same result, computed or kept in another way";

constexpr KeyInfo kKeys[] = {
    {"model.name", kString, "null", kActs, "family of models: llama3, qwen3 or deepseek_v3"},
    {"model.flavor", kString, "null", kActs, "size in that family: 8B"},
    {"model.converters", kAny, "null", kActs,
     "kernel choices, which are accepted, or low precision"},
    {"model.hf_assets_path", kString, "null", kActs,
     "file or folder of a tokenizer, opened when the end of a document is not known otherwise"},
    {"model.tokenizer_path", kString, "null", kActs, "older name of model.hf_assets_path"},
    {"model.dim", kInt, "null", kActs, "width of the residual stream; null: as model.flavor says"},
    {"model.n_layers", kInt, "null", kActs, "transformer layers; null: as model.flavor says"},
    {"model.n_heads", kInt, "null", kActs, "query heads; null: as model.flavor says"},
    {"model.n_kv_heads", kInt, "null", kActs, "key/value heads; null: as model.flavor says"},
    {"model.head_dim", kInt, "null", kActs, "qwen3: size of a head"},
    {"model.hidden_dim", kInt, "null", kActs, "qwen3: width of the MLP"},
    {"model.inter_dim", kInt, "null", kActs, "deepseek_v3: width of the MLP of dense layers"},
    {"model.ffn_dim_multiplier", kFloat, "null", kActs,
     "llama3: the MLP is floor(this * floor(8 dim / 3)) wide, rounded up to model.multiple_of"},
    {"model.multiple_of", kInt, "null", kActs, "llama3: unit of the width of the MLP"},
    {"model.vocab_size", kInt, "null", kActs, "vocabulary; null: as model.flavor says"},
    {"model.rope_theta", kFloat, "null", kActs, "base of the rotary frequencies"},
    {"model.norm_eps", kFloat, "null", kActs, "added to the mean square in norms"},
    {"model.qk_norm", kBool, "null", kActs, "qwen3: norm of each head of queries and keys"},
    {"model.enable_weight_tying", kBool, "null", kActs, "one table for input and output"},
    {"model.max_seq_len", kInt, "null", kNoEffect, "positions go as far as training.seq_len"},
    {"model.depth_init", kBool, "true", kNoEffect, "start weights are those of the megatron keys"},
    {"model.use_flex_attn", kBool, "false", kNotYet, "attention within documents"},
    {"model.attn_type", kString, "sdpa", kNotYet, "attention within documents"},
    {"model.attn_mask_type", kString, "causal", kNotYet, "attention within documents"},
    {"model.eos_id", kInt, "null", kNoEffect, "read only by attention within documents"},
    {"model.n_dense_layers", kInt, "null", kActs, "deepseek_v3: layers without experts"},
    {"model.moe_inter_dim", kInt, "null", kActs, "width of an expert"},
    {"model.moe_args", kAny, "null", kNotYet, "other experts than the flavor's"},
    {"model.kv_lora_rank", kInt, "null", kNoEffect, kExperts},
    {"model.mscale", kFloat, "null", kNoEffect, kExperts},
    {"model.q_lora_rank", kInt, "null", kNoEffect, kExperts},
    {"model.qk_nope_head_dim", kInt, "null", kNoEffect, kExperts},
    {"model.qk_rope_head_dim", kInt, "null", kNoEffect, kExperts},
    {"model.v_head_dim", kInt, "null", kNoEffect, kExperts},
    {"model.print_after_conversion", kBool, "false", kNoEffect, "logging"},
    {"training.local_batch_size", kInt, "8", kActs,
     "samples that a data-parallel rank runs at once, in pipeline micro batches"},
    {"training.global_batch_size", kInt, "-1", kActs,
     "samples of a step; below 0: local batch x data-parallel size"},
    {"training.seq_len", kInt, "2048", kActs, "tokens of a sample"},
    {"training.steps", kInt, "10000", kActs, "steps"},
    {"training.max_norm", kFloat, "1.0", kActs, "largest gradient norm"},
    {"training.mixed_precision_param", kString, "bfloat16", kActs, "bfloat16 or float32 compute"},
    {"training.mixed_precision_reduce", kString, "float32", kActs,
     "type in which gradients are summed over data-parallel ranks"},
    {"training.dtype", kString, "float32", kNotYet, "master weights in 16 bits"},
    {"training.mock_data", kBool, "false", kActs, "synthetic documents"},
    {"training.dataset", kString, "c4", kActs,
     "a name on a model hub: nothing is fetched, so training.dataset_path or mock data is needed"},
    {"training.dataset_path", kString, "null", kActs, "prefix of .bin/.idx files of token ids"},
    {"training.enable_cpu_offload", kBool, "false", kNotYet, "weights and optimizer on the host"},
    {"optimizer.name", kString, "AdamW", kActs, "AdamW; Adam where nothing decays"},
    {"optimizer.lr", kFloat, "0.0008", kActs, "highest learning rate"},
    {"optimizer.beta1", kFloat, "0.9", kActs, "AdamW"},
    {"optimizer.beta2", kFloat, "0.95", kActs, "AdamW"},
    {"optimizer.eps", kFloat, "1.0e-08", kActs, "AdamW"},
    {"optimizer.weight_decay", kFloat, "0.1", kActs, "decay of the weights"},
    {"optimizer.implementation", kString, "fused", kNoEffect, kSame},
    {"optimizer.early_step_in_backward", kBool, "false", kNotYet, "steps without clipping"},
    {"lr_scheduler.warmup_steps", kInt, "200", kActs, "steps of warm-up, at most all"},
    {"lr_scheduler.decay_ratio", kFloat, "null", kActs,
     "share of the steps in which the rate falls; null: all after the warm-up"},
    {"lr_scheduler.decay_type", kString, "linear", kActs, "linear, sqrt or cosine"},
    {"lr_scheduler.min_lr_factor", kFloat, "0.0", kActs, "lowest rate as a share of optimizer.lr"},
    {"lr_scheduler.total_steps", kInt, "null", kActs,
     "steps of the rate's schedule; null: training.steps"},
    {"activation_checkpoint.mode", kString, "none", kActs,
     "layers that backward computes again: none, selective or full"},
    {"activation_checkpoint.selective_ac_option", kString, "2", kActs,
     "selective: every n-th layer; op: norms and activations of all"},
    {"activation_checkpoint.early_stop", kBool, "false", kNoEffect, kSame},
    {"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", kAny, "[]", kNoEffect,
     kSame},
    {"activation_checkpoint.preserve_rng_state", kBool, "true", kNoEffect, kSame},
    {"activation_checkpoint.determinism_check", kString, "default", kNoEffect, kSame},
    {"activation_checkpoint.debug", kBool, "false", kNoEffect, kSame},
    {"checkpoint.enable", kBool, "false", kNotYet, "checkpoints"},
    {"validation.enable", kBool, "false", kNotYet, "validation"},
    {"debug.seed", kInt, "null", kActs, "start weights and data order; null: 1234"},
    {"debug.moe_force_load_balance", kBool, "false", kNoEffect, kExperts},
    {"metrics.log_freq", kInt, "10", kActs, "steps between console lines"},
    {"metrics.enable_tensorboard", kBool, "false", kActs, "files for TensorBoard"},
};

}  // namespace

std::span<const KeyInfo> torchtitan_run_keys() {
  return kKeys;
}

}  // namespace sevenfold::config

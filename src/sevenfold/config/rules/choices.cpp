#include "sevenfold/config/rules/choices.h"

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr std::string_view kFloats = "fp32, bf16, fp16 or fp8";

constexpr Choice kMegatron[] = {
    {"communication_method", "async_p2p or batch_p2p"},
    {"zero_bubble_v_schedule_mem_setup", "half, min or zb"},
    {"offload_ops", "attn"},
    {"data_parallel_sharding_strategy", "no_shard, optim, optim_grads or optim_grads_params"},
    {"moe_router_score_function", "softmax, sigmoid or sqrtsoftplus"},
    {"moe_router_load_balancing_type", "aux_loss, seq_aux_loss, global_aux_loss, sinkhorn or none"},
    {"moe_router_dtype", "fp32 or fp64"},
    {"moe_token_dispatcher_type", "allgather, alltoall, flex or alltoall_seq"},
    {"moe_token_drop_policy", "probs or position"},
    {"moe_router_force_load_balancing_type", "even or uniform"},
    {"rope_type", "rope or yarn"},
    {"main_grads_dtype", kFloats},
    {"main_params_dtype", kFloats},
    {"exp_avg_dtype", kFloats},
    {"exp_avg_sq_dtype", kFloats},
    {"fp8", "e4m3 or hybrid"},
    {"fp8_recipe", "delayed, tensorwise, blockwise or mxfp8"},
    {"fp8_amax_compute_algo", "max or most_recent"},
    {"recompute_granularity", "full or selective"},
    {"recompute_method", "uniform or block"},
    {"ckpt_format", "torch, torch_dist, torch_dcp, fsdp_dtensor or zarr"},
};

constexpr Choice kTorchTitan[] = {
    {"training.mixed_precision_param", "bfloat16 or float32"},
    {"training.mixed_precision_reduce", "bfloat16 or float32"},
    {"training.dtype", "bfloat16 or float32"},
    {"optimizer.name", "Adam or AdamW"},
    {"optimizer.implementation", "for-loop, foreach or fused"},
    {"lr_scheduler.decay_type", "linear, sqrt or cosine"},
    {"activation_checkpoint.mode", "none, selective, full or memory_budget"},
    {"parallelism.fsdp_reshard_after_forward", "always, never or default"},
    {"parallelism.context_parallel_rotate_method", "allgather or alltoall"},
    {"parallelism.context_parallel_load_balancer", "headtail or ptrr"},
    {"parallelism.expert_parallel_comm_backend", "standard or deepep"},
    {"checkpoint.async_mode", "disabled, async or async_with_pinned_mem"},
    {"checkpoint.export_dtype", "float16, bfloat16 or float32"},
};

void check_word(const Parameters& parameters, const Choice& choice, const Value& value) {
  if (value.is_null() || value.text.empty() || is_choice(choice.words, value.text)) return;
  raise_rule("key.choice", "config: {}: `{}` is not among the choices; use {}",
             parameters.where(std::string(choice.key)), brief(value), choice.words);
}

}  // namespace

std::span<const Choice> choices(Framework framework) {
  if (framework == Framework::kTorchTitan) return kTorchTitan;
  return kMegatron;
}

bool is_choice(std::string_view words, std::string_view word) {
  if (word == "or" || word.find_first_of(", ") != std::string_view::npos) return false;
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool starts = at == 0 || words[at - 1] == ' ';
    if (starts && (end == words.size() || words[end] == ',' || words[end] == ' ')) return true;
  }
  return false;
}

void check_choices(const Parameters& parameters) {
  for (const Choice& choice : choices(parameters.framework())) {
    const Value& value = parameters.at(std::string(choice.key));
    if (!value.is_list()) check_word(parameters, choice, value);
    for (const Value& item : value.list) check_word(parameters, choice, item);
  }
}

}  // namespace sevenfold::config

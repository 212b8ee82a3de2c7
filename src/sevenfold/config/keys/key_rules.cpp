#include "sevenfold/config/keys/key_rules.h"

#include "sevenfold/config/rules/choices.h"

namespace sevenfold::config {
namespace {

constexpr std::string_view kPrefixes =
    "prefixes, or weights (at least 0) and prefixes in turn; one source of data";

constexpr KeyRule kRules[] = {
    {"tensor_model_parallel_size",
     "world % (TP x PP x CP) = 0; heads % TP = 0; groups % TP = 0 or TP % groups = 0"},
    {"pipeline_model_parallel_size", "num_layers % PP = 0 unless a key cuts the layers otherwise"},
    {"context_parallel_size", "seq_length % (2 CP) = 0"},
    {"expert_model_parallel_size", "num_experts % EP = 0; world % (ETP x EP x PP) = 0"},
    {"expert_tensor_parallel_size", "1 with add_bias_linear in a model with experts"},
    {"cp_comm_type",
     "p2p, a2a, all_gather or a2a+p2p; one, or num_layers of them; a2a: heads and "
     "groups % (TP x CP) = 0"},
    {"hierarchical_context_parallel_sizes", "two numbers with product CP; a2a+p2p needs them"},
    {"use_tp_pp_dp_mapping", "with PP > 1 equal data parallelism of dense and expert weights"},
    {"num_virtual_stages_per_pipeline_rank", "divides the layers of a rank; PP > 1"},
    {"num_layers_per_virtual_pipeline_stage", "divides the layers of a rank; PP > 1"},
    {"pipeline_model_parallel_layout",
     "E first, L last, num_layers t, mtp_num_layers m; stages % PP = 0; no other key of the cut"},
    {"decoder_first_pipeline_num_layers", "what it leaves divides into stages and pieces"},
    {"decoder_last_pipeline_num_layers", "what it leaves divides into stages and pieces"},
    {"account_for_embedding_in_pipeline_split", "(layers + 1 for each such key) % PP = 0"},
    {"account_for_loss_in_pipeline_split", "(layers + 1 for each such key) % PP = 0"},
    {"decoder_pipeline_manual_split_list", "a number for each stage; their sum is num_layers"},
    {"microbatch_group_size_per_vp_stage", "PP to M; M % value is 0 or at least PP"},
    {"overlap_p2p_comm", "false with several pieces per rank: PP > 2"},
    {"pp_algorithm",
     "a name that `sevenfold schedule` knows; pieces per rank: 1; interleaved ones 2 or more; the "
     "V schedules 2"},
    {"offload", "only with a V schedule of patch_primus_pipeline"},
    {"pp_max_mem", "above 0"},
    {"pp_cost_f", "above 0; a number, or PP of them"},
    {"pp_cost_b", "above 0; a number, or PP of them"},
    {"pp_cost_w", "above 0; a number, or PP of them"},
    {"zero_bubble_max_pending_backward", "auto, or a whole number above 0"},
    {"micro_batch_size", "at least 1"},
    {"global_batch_size", "micro batch x data-parallel size x a whole number"},
    {"rampup_batch_size",
     "every batch divides by micro batch x data-parallel size; the increment divides the rise"},
    {"step_batch_size_schedule",
     "starts at 0 and rises; every batch divides as above; not with "
     "rampup_batch_size"},
    {"train_iters", "not with train_samples"},
    {"train_samples", "not with train_iters"},
    {"lr_decay_iters", "at least 1; not with train_samples"},
    {"lr_decay_samples", "at least 1; only with train_samples"},
    {"lr_warmup_iters", "shorter than the decay; 0 with train_samples"},
    {"lr_warmup_samples", "shorter than the decay; only with train_samples"},
    {"lr_warmup_fraction", "below 1; not with another warm-up"},
    {"lr_warmup_init", "at most lr"},
    {"lr_wsd_decay_iters", "1 to the decay; WSD needs it"},
    {"lr_wsd_decay_samples", "1 to the decay; WSD in samples needs it"},
    {"min_lr", "at most lr"},
    {"weight_decay_incr_style", "constant: start and end null; linear, cosine: both set"},
    {"start_weight_decay", "at least 0"},
    {"adam_eps", "above 0"},
    {"end_weight_decay", "at least the start"},
    {"seq_length", "at most max_position_embeddings; % (2 CP) = 0"},
    {"encoder_seq_length", "null"},
    {"max_position_embeddings", "must be set"},
    {"data_path", kPrefixes},
    {"train_data_path", kPrefixes},
    {"valid_data_path", kPrefixes},
    {"test_data_path", kPrefixes},
    {"split", "three weights: training, validation, test"},
    {"seed", "at most 2^32 - 1, unless sevenfold.shuffle is false"},
    {"mid_level_dataset_surplus", "0 to 1"},
    {"num_attention_heads", "divides hidden_size unless kv_channels is set"},
    {"num_query_groups", "divides num_attention_heads"},
    {"rotary_percent", "above 0, at most 1; rotates an even number of components"},
    {"hidden_dropout", "at least 0, below 1"},
    {"attention_dropout", "at least 0, below 1"},
    {"swiglu", "one activation: not with quick_geglu, openai_gelu, squared_relu"},
    {"quick_geglu", "needs swiglu false"},
    {"openai_gelu", "needs swiglu false"},
    {"squared_relu", "needs swiglu false"},
    {"add_bias_linear", "implies add_qkv_bias"},
    {"multi_latent_attention", "not with group_query_attention or rotary_interleaved"},
    {"mtp_num_layers", "not with learned positions"},
    {"moe_layer_freq", "at least 1, or a 0 or 1 for each layer"},
    {"moe_ffn_hidden_size", "at least 1"},
    {"moe_shared_expert_intermediate_size", "at least 1"},
    {"moe_shared_expert_overlap", "needs moe_token_dispatcher_type alltoall or flex"},
    {"moe_router_topk", "1 to num_experts; 1 with softmax needs moe_router_pre_softmax"},
    {"moe_router_num_groups", "divides num_experts"},
    {"moe_router_group_topk", "1 to moe_router_num_groups"},
    {"moe_router_enable_expert_bias", "needs sigmoid or sqrtsoftplus scores"},
    {"moe_pad_expert_input_to_capacity", "needs moe_expert_capacity_factor"},
    {"moe_expert_capacity_factor", "not with sinkhorn"},
    {"overlap_param_gather", "needs a sharded optimizer and overlap_grad_reduce"},
    {"use_torch_fsdp2", "not with another way of cutting weights or state"},
    {"num_distributed_optimizer_instances", "divides data-parallel size x CP"},
    {"data_parallel_replicate_degree",
     "divides data-parallel size x CP; above 1 needs use_torch_fsdp2"},
    {"optimizer_cpu_offload", "needs use_precision_aware_optimizer"},
    {"use_precision_aware_optimizer", "needs optimizer adam"},
    {"exp_avg_dtype", "other than fp32 needs use_precision_aware_optimizer"},
    {"exp_avg_sq_dtype", "other than fp32 needs use_precision_aware_optimizer"},
    {"main_grads_dtype", "other than fp32 needs use_precision_aware_optimizer"},
    {"main_params_dtype", "other than fp32 needs use_precision_aware_optimizer"},
    {"bf16", "not with fp16"},
    {"fp16", "not with bf16"},
    {"min_loss_scale", "at most initial_loss_scale"},
    {"fp4", "not with fp8"},
    {"fp32_residual_connection", "needs bf16 or fp16"},
    {"distribute_saved_activations", "needs full, a method, tensor parallelism without sequence"},
    {"recompute_method", "full needs uniform or block; selective needs null"},
    {"recompute_num_layers", "full needs it (0: none); selective forbids it"},
    {"recompute_layer_ids", "layers below num_layers; needs full and method null"},
    {"recompute_modules", "core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts"},
    {"save_interval", "at least 1"},
    {"save_retain_interval", "a multiple of save_interval"},
    {"use_checkpoint_opt_param_scheduler", "not with override_opt_param_scheduler"},
    {"normalization", "RMSNorm or LayerNorm"},
    {"position_embedding_type", "rope, learned_absolute or none"},
    {"dataloader_type", "single or cyclic"},
    {"lr_decay_style", "constant, linear, cosine, inverse-square-root or WSD"},
    {"lr_wsd_decay_style", "linear, cosine, exponential or minus_sqrt"},
    {"batch_size", "null: the key is gone"},
    {"warmup", "null: the key is gone"},
    {"model_parallel_size", "null: the key is gone"},
    {"checkpoint_activations", "false: the key is gone"},
    {"use_turbo_parallel_linear", "false: renamed"},
    {"use_turbo_grouped_mlp", "false: renamed"},
};

}  // namespace

std::span<const KeyRule> key_rules() {
  return kRules;
}

std::string rule_of_key(std::string_view key) {
  std::string text;
  for (const KeyRule& rule : key_rules())
    if (rule.key == key) text = rule.rule;
  for (const Choice& choice : choices())
    if (choice.key == key) text = std::string(choice.words) + (text.empty() ? "" : "; ") + text;
  return text;
}

}  // namespace sevenfold::config

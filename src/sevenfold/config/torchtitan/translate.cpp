#include "sevenfold/config/torchtitan/translate.h"

#include "sevenfold/config/torchtitan/parts.h"
#include "sevenfold/config/yaml/scalar.h"

namespace sevenfold::config {
namespace {

struct Twin {
  const char* own;
  const char* megatron;
};

// Keys that mean the same.
constexpr Twin kCopied[] = {
    {"training.steps", "train_iters"},
    {"training.seq_len", "seq_length"},
    {"training.seq_len", "max_position_embeddings"},
    {"training.max_norm", "clip_grad"},
    {"training.mock_data", "mock_data"},
    {"training.dataset_path", "data_path"},
    {"optimizer.lr", "lr"},
    {"optimizer.beta1", "adam_beta1"},
    {"optimizer.beta2", "adam_beta2"},
    {"optimizer.eps", "adam_eps"},
    {"optimizer.weight_decay", "weight_decay"},
    {"debug.seed", "seed"},
    {"metrics.log_freq", "log_interval"},
    {"model.hf_assets_path", "tokenizer_model"},
    {"parallelism.tensor_parallel_degree", "tensor_model_parallel_size"},
    {"parallelism.context_parallel_degree", "context_parallel_size"},
    {"parallelism.pipeline_parallel_degree", "pipeline_model_parallel_size"},
};

// Keys that messages name, though their values are not the same.
constexpr Twin kNamed[] = {
    {"model.n_layers", "num_layers"},
    {"model.dim", "hidden_size"},
    {"model.n_heads", "num_attention_heads"},
    {"model.n_kv_heads", "num_query_groups"},
    {"model.head_dim", "kv_channels"},
    {"model.hidden_dim", "ffn_hidden_size"},
    {"model.vocab_size", "vocab_size"},
    {"model.rope_theta", "rotary_base"},
    {"model.norm_eps", "layernorm_epsilon"},
    {"model.moe_args.num_experts", "num_experts"},
    {"training.global_batch_size", "global_batch_size"},
    {"training.local_batch_size", "micro_batch_size"},
    {"training.mixed_precision_reduce", "grad_reduce_in_bf16"},
    {"lr_scheduler.warmup_steps", "lr_warmup_iters"},
    {"checkpoint.enable", "save"},
    {"checkpoint.interval", "save_interval"},
    {"checkpoint.initial_load_path", "load"},
    {"checkpoint.initial_load_path", "pretrained_checkpoint"},
    {"checkpoint.load_step", "ckpt_step"},
    {"parallelism.data_parallel_replicate_degree", "data_parallel_replicate_degree"},
    {"parallelism.expert_parallel_degree", "expert_model_parallel_size"},
    {"parallelism.expert_tensor_parallel_degree", "expert_tensor_parallel_size"},
    {"parallelism.context_parallel_rotate_method", "cp_comm_type"},
    {"parallelism.pipeline_parallel_schedule", "pp_algorithm"},
};

// What TorchTitan's models and trainer always do.
constexpr std::pair<const char*, const char*> kAlways[] = {
    {"normalization", "RMSNorm"},
    {"position_embedding_type", "rope"},
    {"hidden_dropout", "0.0"},
    {"attention_dropout", "0.0"},
    {"make_vocab_size_divisible_by", "1"},
    {"calculate_per_token_loss", "true"},
    {"use_distributed_optimizer", "false"},
    {"dataloader_type", "single"},
    {"split", "1,0,0"},
    {"eval_iters", "0"},
    {"eval_interval", "0"},
};

void write_always(Draft& draft) {
  for (const auto& [key, text] : kAlways) {
    const KeyType type = find_key(key)->type;
    draft.to.parameters.respell(key, *coerce(resolve_plain_scalar(text), type));
  }
}

void write_logging(Draft& draft) {
  const char* key = "metrics.enable_tensorboard";
  draft.set("disable_tensorboard", Value::of(!draft.own.boolean(key)), key);
  if (draft.own.is_null("model.hf_assets_path") && !draft.own.is_null("model.tokenizer_path"))
    draft.copy("tokenizer_model", "model.tokenizer_path");
}

}  // namespace

void Draft::set(const char* key, Value value, const char* from) {
  value.origin = own.at(from).origin;
  to.parameters.translate(key, std::move(value), own.where(from));
}

void Draft::copy(const char* key, const char* from) {
  to.names.set(key, from);
  const bool may_be_null = find_key(from, Framework::kTorchTitan)->default_yaml == "null";
  if (own.is_null(from) && may_be_null) return;
  set(key, own.required(from), from);
}

Translation translate(Parameters& own, const SevenfoldBlock& block, const LoadOptions& options) {
  check_choices(own);
  Translation translation{
      .parameters = Parameters(Value::empty_map()), .block = block, .options = options};
  Draft draft{own, translation};
  write_always(draft);
  for (const Twin& twin : kNamed) translation.names.set(twin.megatron, twin.own);
  for (const Twin& twin : kCopied) draft.copy(twin.megatron, twin.own);
  write_logging(draft);
  translate_model(draft);
  const Degrees degrees = translate_degrees(draft);
  translate_batches(draft, degrees);
  translate_data(draft);
  translate_optimizer(draft);
  translate_learning_rate(draft);
  translate_precision(draft, degrees);
  translate_recomputation(draft);
  translate_checkpoints(draft);
  translate_pipeline(draft, degrees);
  refuse_unsupported_values(own);
  return translation;
}

}  // namespace sevenfold::config

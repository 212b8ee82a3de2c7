#include "sevenfold/config/keys/key_tables.h"

// The torchtitan vocabulary: degrees, pipeline, and what surrounds a run.

namespace sevenfold::config {
namespace {

using enum KeyType;
using enum KeyStatus;

constexpr std::string_view kCp = "how ranks share a sequence; the same result";
constexpr std::string_view kTensor = "how ranks communicate; the same result";
constexpr std::string_view kValidate = "acts only with validation.enable";
constexpr std::string_view kLow = "acts only with a converter that quantizes";
constexpr std::string_view kKernel = "choice of kernel";
constexpr std::string_view kRuntime = "runtime of another program";
constexpr std::string_view kChecks = "runs are deterministic here";
constexpr std::string_view kLog = "logging";
constexpr std::string_view kLegacy = "a name without a meaning of its own";

constexpr KeyInfo kKeys[] = {
    {"parallelism.tensor_parallel_degree", kInt, "1", kActs,
     "ranks that share a layer, and between its parts the sequence (TP with SP)"},
    {"parallelism.pipeline_parallel_degree", kInt, "1", kActs, "ranks of a pipeline (PP)"},
    {"parallelism.context_parallel_degree", kInt, "1", kActs, "ranks that share a sequence (CP)"},
    {"parallelism.data_parallel_shard_degree", kInt, "-1", kActs,
     "ranks that share weights, gradients and state, with those of CP (ZeRO-3); -1: all there are"},
    {"parallelism.data_parallel_replicate_degree", kInt, "1", kActs,
     "copies of those sets of ranks (hybrid sharding, plain DP)"},
    {"parallelism.expert_parallel_degree", kInt, "1", kActs,
     "ranks that share the experts of a layer (EP)"},
    {"parallelism.expert_tensor_parallel_degree", kInt, "1", kActs, "ranks that share an expert"},
    {"parallelism.fsdp_reshard_after_forward", kString, "default", kActs,
     "free weights after forward and gather them again; default: not with a pipeline"},
    {"parallelism.pipeline_parallel_schedule", kString, "1F1B", kActs, "the schedule"},
    {"parallelism.pipeline_parallel_schedule_csv", kString, "null", kActs,
     "a table of PyTorch's form instead"},
    {"parallelism.pipeline_parallel_microbatch_size", kInt, "1", kActs,
     "samples of a pipeline's micro batch"},
    {"parallelism.pipeline_parallel_layers_per_stage", kInt, "null", kActs,
     "layers of a stage; null: one stage per rank, two where the schedule has several"},
    {"parallelism.pipeline_parallel_first_stage_less_layers", kInt, "1", kActs,
     "layers that the embedding counts as"},
    {"parallelism.pipeline_parallel_last_stage_less_layers", kInt, "1", kActs,
     "layers that norm and output count as"},
    {"parallelism.module_fqns_per_model_part", kAny, "null", kActs,
     "names of the modules of every stage, written out"},
    {"parallelism.context_parallel_load_balancer", kString, "headtail", kNoEffect, kCp},
    {"parallelism.context_parallel_rotate_method", kString, "allgather", kActs,
     "how keys and values travel between ranks that share a sequence"},
    {"parallelism.disable_loss_parallel", kBool, "false", kNoEffect, kTensor},
    {"parallelism.enable_async_tensor_parallel", kBool, "false", kNoEffect, kTensor},
    {"parallelism.expert_parallel_comm_backend", kString, "standard", kNoEffect, kTensor},
    {"parallelism.pipeline_parallel_expert_parallel_overlap", kBool, "true", kNoEffect, kTensor},
    {"validation.dataset", kString, "c4_validation", kNoEffect, kValidate},
    {"validation.dataset_path", kString, "null", kNoEffect, kValidate},
    {"validation.freq", kInt, "10", kNoEffect, kValidate},
    {"validation.local_batch_size", kInt, "8", kNoEffect, kValidate},
    {"validation.seq_len", kInt, "2048", kNoEffect, kValidate},
    {"validation.steps", kInt, "-1", kNoEffect, kValidate},
    {"quantize.grouped_mm.float8.fqns", kAny, "[]", kNoEffect, kLow},
    {"quantize.grouped_mm.mx.fqns", kAny, "[]", kNoEffect, kLow},
    {"quantize.grouped_mm.mx.recipe_name", kString, "mxfp8", kNoEffect, kLow},
    {"quantize.linear.float8.emulate", kBool, "false", kNoEffect, kLow},
    {"quantize.linear.float8.enable_fsdp_float8_all_gather", kBool, "false", kNoEffect, kLow},
    {"quantize.linear.float8.filter_fqns", kAny, "[]", kNoEffect, kLow},
    {"quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", kBool, "false", kNoEffect,
     kLow},
    {"quantize.linear.float8.recipe_name", kString, "null", kNoEffect, kLow},
    {"quantize.linear.mx.filter_fqns", kAny, "[output]", kNoEffect, kLow},
    {"quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", kString, "triton", kNoEffect, kLow},
    {"quantize.linear.mx.recipe_name", kString, "mxfp8_cublas", kNoEffect, kLow},
    {"primus_turbo.enable_attention_float8", kBool, "false", kNotYet, "8-bit attention"},
    {"primus_turbo.enable_embedding_autocast", kBool, "true", kNoEffect, kKernel},
    {"primus_turbo.enable_primus_turbo", kBool, "true", kNoEffect, kKernel},
    {"primus_turbo.use_classic_attention", kBool, "false", kActs,
     "deepseek_v3: grouped queries in place of latent attention"},
    {"primus_turbo.use_moe_fp8", kBool, "true", kNoEffect, kLow},
    {"primus_turbo.use_turbo_async_tp", kBool, "true", kNoEffect, kKernel},
    {"primus_turbo.use_turbo_attention", kBool, "true", kNoEffect, kKernel},
    {"primus_turbo.use_turbo_float8_linear", kBool, "true", kNoEffect, kLow},
    {"primus_turbo.use_turbo_grouped_mm", kBool, "false", kNoEffect, kKernel},
    {"primus_turbo.use_turbo_mx_linear", kBool, "true", kNoEffect, kLow},
    {"training.gc_debug", kBool, "false", kNoEffect, kRuntime},
    {"training.gc_freq", kInt, "50", kNoEffect, kRuntime},
    {"comm.init_timeout_seconds", kInt, "300", kNoEffect, kRuntime},
    {"comm.save_traces_folder", kString, "comm_traces", kNoEffect, kRuntime},
    {"comm.trace_buf_size", kInt, "20000", kNoEffect, kRuntime},
    {"comm.train_timeout_seconds", kInt, "100", kNoEffect, kRuntime},
    {"compile.components", kAny, "[model, loss]", kNoEffect, kRuntime},
    {"compile.enable", kBool, "false", kNoEffect, kRuntime},
    {"dataloader", kMap, "{}", kNoEffect, kRuntime},
    {"experimental.custom_args_module", kString, "null", kNoEffect, kRuntime},
    {"experimental.custom_import", kString, "null", kNoEffect, kRuntime},
    {"fault_tolerance.enable", kBool, "false", kNotYet, "replicas that come and go"},
    {"fault_tolerance.group_size", kInt, "0", kNoEffect, kRuntime},
    {"fault_tolerance.min_replica_size", kInt, "1", kNoEffect, kRuntime},
    {"fault_tolerance.process_group", kString, "gloo", kNoEffect, kRuntime},
    {"fault_tolerance.process_group_timeout_ms", kInt, "10000", kNoEffect, kRuntime},
    {"fault_tolerance.replica_id", kInt, "0", kNoEffect, kRuntime},
    {"fault_tolerance.semi_sync_method", kString, "null", kNotYet, "replicas that step apart"},
    {"memory_estimation.disable_fake_mode", kBool, "false", kNoEffect, kRuntime},
    {"memory_estimation.enable", kBool, "false", kNoEffect, kRuntime},
    {"debug.deterministic", kBool, "false", kNoEffect, kChecks},
    {"debug.deterministic_warn_only", kBool, "false", kNoEffect, kChecks},
    {"job.config_file", kString, "null", kNoEffect, kRuntime},
    {"job.custom_config_module", kString, "null", kNoEffect, kRuntime},
    {"job.description", kString, "null", kNoEffect, kLog},
    {"job.dump_folder", kString, "./outputs", kNoEffect,
     "output goes to workspace/work_group/user_name/exp_name"},
    {"job.print_config", kBool, "false", kNoEffect, kLog},
    {"metrics.disable_color_printing", kBool, "false", kNoEffect, kLog},
    {"metrics.enable_wandb", kBool, "false", kNoEffect, kLog},
    {"metrics.save_for_all_ranks", kBool, "false", kNoEffect, kLog},
    {"metrics.save_tb_folder", kString, "tb", kNoEffect, kLog},
    {"profiling.enable_memory_snapshot", kBool, "false", kNoEffect, kLog},
    {"profiling.enable_profiling", kBool, "false", kNoEffect, kLog},
    {"profiling.profile_freq", kInt, "10", kNoEffect, kLog},
    {"profiling.save_memory_snapshot_folder", kString, "memory_snapshot", kNoEffect, kLog},
    {"profiling.save_traces_folder", kString, "profile_traces", kNoEffect, kLog},
    {"file_sink_level", kString, "null", kNoEffect, kLog},
    {"sink_level", kString, "null", kNoEffect, kLog},
    {"stderr_sink_level", kString, "null", kNoEffect, kLog},
    {"stage", kString, "null", kNotYet, "post-training"},
    {"trainable", kBool, "true", kNoEffect, kLegacy},
    {"trainer_class", kString, "null", kNoEffect, kLegacy},
};

}  // namespace

std::span<const KeyInfo> torchtitan_system_keys() {
  return kKeys;
}

}  // namespace sevenfold::config

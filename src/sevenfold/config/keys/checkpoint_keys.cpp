#include "sevenfold/config/keys/key_tables.h"

// Checkpoints.

namespace sevenfold::config {
namespace {

using enum KeyType;
using enum KeyStatus;

constexpr std::string_view kFormat = "checkpoints have a format of their own here";
constexpr std::string_view kWhole = "a checkpoint is whole before the run goes on";
constexpr std::string_view kNoState =
    "random numbers are functions of seed, site and sample: there is no state";
constexpr std::string_view kOthers = "no checkpoints are kept beside those of save_interval";

constexpr KeyInfo kKeys[] = {
    {"save", kString, "null", kActs,
     "checkpoints, in the folder checkpoints of the run's own, as in Primus; null: none"},
    {"save_interval", kInt, "1000", kActs, "steps between checkpoints"},
    {"save_retain_interval", kInt, "null", kActs,
     "checkpoints of its multiples stay, of the others only the newest; null: all stay"},
    {"disable_last_saving", kBool, "false", kActs,
     "no checkpoint after the last step, unless save_interval divides it"},
    {"no_save_optim", kBool, "null", kActs,
     "checkpoints without the optimizer's states: no run resumes from them"},
    {"load", kString, "null", kActs,
     "checkpoint, or folder of them, to begin from where the run has none of its own"},
    {"pretrained_checkpoint", kString, "null", kActs, "as load, for weights only"},
    {"ckpt_step", kInt, "null", kActs,
     "which checkpoint of the folder that load names; null: the newest"},
    {"finetune", kBool, "true", kActs,
     "of load only the weights are read, and the run begins at step 0; nothing when resuming"},
    {"no_load_optim", kBool, "null", kActs,
     "of load weights and position are read; the optimizer's states begin anew"},
    {"exit_on_missing_checkpoint", kBool, "true", kActs,
     "load must hold a checkpoint; false: without one the run begins from start weights"},
    {"use_checkpoint_args", kBool, "false", kActs,
     "true with load: the model as the checkpoint says, not supported"},
    {"use_checkpoint_opt_param_scheduler", kBool, "false", kActs,
     "true with load: rates as the checkpoint says, not supported"},
    {"ckpt_convert_format", kAny, "null", kNotYet, "a checkpoint converted to another format"},
    {"override_opt_param_scheduler", kBool, "true", kNoEffect,
     "rates follow the configuration always"},
    {"auto_continue_train", kBool, "false", kNoEffect,
     "a run resumes from its own folder, unless --resume says otherwise"},
    {"async_save", kBool, "null", kNoEffect, kWhole},
    {"use_persistent_ckpt_worker", kBool, "false", kNoEffect, kWhole},
    {"no_load_rng", kBool, "null", kNoEffect, kNoState},
    {"no_save_rng", kBool, "null", kNoEffect, kNoState},
    {"load_main_params_from_ckpt", kBool, "false", kNoEffect,
     "master weights begin as the checkpoint's weights always"},
    {"use_mp_args_from_checkpoint_args", kBool, "false", kNoEffect,
     "a checkpoint loads into every layout, and that of the file is used"},
    {"use_tokenizer_model_from_checkpoint_args", kBool, "true", kNoEffect,
     "acts only with use_checkpoint_args"},
    {"auto_detect_ckpt_format", kBool, "false", kNoEffect, kFormat},
    {"ckpt_assume_constant_structure", kBool, "false", kNoEffect, kFormat},
    {"ckpt_convert_save", kAny, "null", kNoEffect, "acts only with ckpt_convert_format"},
    {"ckpt_convert_update_legacy_dist_opt_format", kBool, "false", kNoEffect, kFormat},
    {"ckpt_format", kString, "torch_dist", kNoEffect, kFormat},
    {"ckpt_fully_parallel_load", kBool, "false", kNoEffect, kFormat},
    {"ckpt_fully_parallel_save", kBool, "true", kNoEffect, kFormat},
    {"ckpt_fully_parallel_save_deprecated", kBool, "false", kNoEffect, kFormat},
    {"dist_ckpt_format_deprecated", kAny, "null", kNoEffect, kFormat},
    {"dist_ckpt_optim_fully_reshardable", kBool, "null", kNoEffect, kFormat},
    {"dist_ckpt_save_pre_mcore_014", kBool, "null", kNoEffect, kFormat},
    {"dist_ckpt_strictness", kString, "assume_ok_unexpected", kNoEffect, kFormat},
    {"fully_parallel_save", kBool, "true", kNoEffect, kFormat},
    {"use_dist_ckpt_deprecated", kBool, "false", kNoEffect, kFormat},
    {"non_persistent_ckpt_type", kAny, "null", kNoEffect, kOthers},
    {"non_persistent_global_ckpt_dir", kAny, "null", kNoEffect, kOthers},
    {"non_persistent_local_ckpt_algo", kString, "fully_parallel", kNoEffect, kOthers},
    {"non_persistent_local_ckpt_dir", kAny, "null", kNoEffect, kOthers},
    {"non_persistent_save_interval", kInt, "null", kNoEffect, kOthers},
    {"replication", kBool, "false", kNoEffect, kOthers},
    {"replication_factor", kInt, "null", kNoEffect, kOthers},
    {"replication_jump", kInt, "null", kNoEffect, kOthers},
};

}  // namespace

std::span<const KeyInfo> checkpoint_keys() {
  return kKeys;
}

}  // namespace sevenfold::config

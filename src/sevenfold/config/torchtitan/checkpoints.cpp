#include "sevenfold/config/torchtitan/parts.h"

namespace sevenfold::config {
namespace {

constexpr const char* kEnable = "checkpoint.enable";
constexpr const char* kFolder = "checkpoint.folder";
constexpr const char* kInterval = "checkpoint.interval";
constexpr const char* kKeep = "checkpoint.keep_latest_k";
constexpr const char* kLoadOnly = "checkpoint.load_only";
constexpr const char* kPath = "checkpoint.initial_load_path";
constexpr const char* kWeightsOnly = "checkpoint.initial_load_model_only";
constexpr const char* kStep = "checkpoint.load_step";
constexpr const char* kExcluded = "checkpoint.exclude_from_loading";

void check_numbers(const Parameters& own) {
  const int64_t interval = own.integer(kInterval);
  if (interval < 1 || interval > kMaxSize)
    raise_rule("checkpoint.interval",
               "config: {}: must be at least 1 step and at most {}; use checkpoint.load_only=true "
               "to save nothing",
               own.where(kInterval), kMaxSize);
  const int64_t keep = own.integer(kKeep);
  if (keep < 0 || keep == 1 || keep > kMaxSize)
    raise_rule("checkpoint.keep",
               "config: {}: must be 0 (all stay), or at least 2 and at most {}, so that one is "
               "there while the next is written",
               own.where(kKeep), kMaxSize);
  const int64_t step = own.integer(kStep);
  if (step < -1 || step > kMaxSize)
    raise_rule("checkpoint.step",
               "config: {}: a step is at least 0 and at most {}; use -1 for the newest",
               own.where(kStep), kMaxSize);
}

// `item`: of what the values are that the engine has to do without, "save" or "load".
void refuse_flag(Parameters& own, const char* item, const char* key, const char* what) {
  if (own.boolean(key))
    own.unsupported(item, fmt::format("config: {}: {} not supported yet; use {}=false",
                                      own.where(key), what, key));
}

bool is_empty(const Value& value) {
  if (value.is_list()) return value.list.empty();
  return value.is_null() || (value.is_string() && value.text.empty());
}

void translate_saving(Draft& draft) {
  Parameters& own = draft.own;
  if (own.boolean(kLoadOnly))
    return own.notice(
        fmt::format("{}: nothing is saved, and the run begins anew unless --resume or {} names a "
                    "checkpoint",
                    own.where(kLoadOnly), kPath));
  refuse_flag(own, "save", "checkpoint.last_save_in_hf", "checkpoints in Hugging Face form are");
  refuse_flag(own, "save", "checkpoint.enable_first_step_checkpoint",
              "a checkpoint after the first step is");
  SevenfoldBlock& block = draft.to.block;
  const std::string folder = own.string(kFolder);
  draft.set("save", Value::of(folder), kEnable);
  draft.set("save_interval", own.at(kInterval), kInterval);
  if (!block.checkpoint_folder) {
    block.checkpoint_folder = folder;
    block.wheres["checkpoint_folder"] = own.where(kFolder);
  }
  if (!block.keep_checkpoints) block.keep_checkpoints = own.integer(kKeep);
}

void translate_loading(Draft& draft) {
  Parameters& own = draft.own;
  refuse_flag(own, "load", "checkpoint.initial_load_in_hf", "weights in Hugging Face form are");
  if (!is_empty(own.at(kExcluded)))
    own.unsupported("load", fmt::format("config: {}: a checkpoint is read as a whole, or with {}="
                                        "true its weights; use {}=[]",
                                        own.where(kExcluded), kWeightsOnly, kExcluded));
  const int64_t step = own.integer(kStep);
  if (own.is_null(kPath)) {
    if (step >= 0)
      own.unsupported(
          "load", fmt::format("config: {}: a run goes on from its newest checkpoint, unless "
                              "--resume names another; use {}=-1, and --resume with the folder of "
                              "that step",
                              own.where(kStep), kStep));
    return;
  }
  const bool weights_only = own.boolean(kWeightsOnly);
  draft.set(weights_only ? "pretrained_checkpoint" : "load", own.at(kPath), kPath);
  draft.set("finetune", Value::of(weights_only), kWeightsOnly);
  if (step >= 0) draft.set("ckpt_step", Value::of(step), kStep);
}

}  // namespace

void translate_checkpoints(Draft& draft) {
  Parameters& own = draft.own;
  if (own.boolean(kEnable)) {
    check_numbers(own);
    translate_saving(draft);
    return translate_loading(draft);
  }
  if (!own.is_null(kPath))
    own.notice(fmt::format("{}: not read, as checkpoint.enable is false", own.where(kPath)));
}

}  // namespace sevenfold::config

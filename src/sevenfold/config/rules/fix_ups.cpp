#include <algorithm>
#include <filesystem>

#include "sevenfold/config/rules/layer_pattern.h"
#include "sevenfold/config/rules/rules.h"
#include "sevenfold/config/yaml/scalar.h"

namespace sevenfold::config {
namespace {

void refuse_legacy_keys(const Parameters& parameters) {
  for (const auto& [key, instead] : {std::pair{"batch_size", "micro_batch_size"},
                                     {"warmup", "lr_warmup_fraction"},
                                     {"model_parallel_size", "tensor_model_parallel_size"},
                                     {"encoder_seq_length", "seq_length"}}) {
    const Value* value = parameters.values().find(key);
    if (value != nullptr && !value->is_null())
      raise_rule("legacy.key", "config: {}: Megatron no longer takes this key; use {}",
                 parameters.where(key), instead);
  }
  const Value* checkpoint = parameters.values().find("checkpoint_activations");
  if (checkpoint != nullptr && checkpoint->boolean)
    raise_rule("legacy.key",
               "config: {}: Megatron no longer takes this key; use recompute_granularity",
               parameters.where("checkpoint_activations"));
  for (const auto& [key, instead] : {std::pair{"use_turbo_parallel_linear", "use_turbo_gemm"},
                                     {"use_turbo_grouped_mlp", "use_turbo_grouped_gemm"}}) {
    const Value* value = parameters.values().find(key);
    if (value != nullptr && value->boolean)
      raise_rule("legacy.key", "config: {}: this key was renamed; use {}", parameters.where(key),
                 instead);
  }
}

// What Primus does with synthetic data: no files, a tokenizer of bare numbers.
void fix_mock_data(Parameters& parameters) {
  constexpr int64_t kMockVocabulary = 131072;
  if (!parameters.boolean("mock_data")) return;
  for (const char* key : {"data_path", "train_data_path", "valid_data_path", "test_data_path"})
    if (!parameters.is_null(key)) {
      parameters.notice(
          fmt::format("{}: not read, because mock_data is true", parameters.where(key)));
      parameters.fix(key, Value::null());
    }
  parameters.fix("tokenizer_type", Value::of(std::string("NullTokenizer")));
  if (parameters.is_null("vocab_size")) parameters.fix("vocab_size", Value::of(kMockVocabulary));
}

void fix_sequence_parallel(Parameters& parameters) {
  const bool is_single = parameters.optional_integer("tensor_model_parallel_size").value_or(1) == 1;
  if (!is_single || !parameters.boolean("sequence_parallel")) return;
  parameters.notice(fmt::format("{}: switched off because tensor_model_parallel_size is 1",
                                parameters.where("sequence_parallel")));
  parameters.fix("sequence_parallel", Value::of(false));
}

std::string checkpoint_folder(const SevenfoldBlock& block) {
  const std::string name = block.checkpoint_folder.value_or("checkpoints");
  const std::filesystem::path path = name;
  const bool goes_up = std::find(path.begin(), path.end(), "..") != path.end();
  if (path.is_absolute() || goes_up || path.lexically_normal() == "." || name.empty())
    raise_rule("checkpoint.folder",
               "config: {}: checkpoints are kept inside the run's own folder; use a name such as "
               "checkpoints",
               block.where("checkpoint_folder"));
  return name;
}

void fix_save_path(Parameters& parameters, const SevenfoldBlock& block,
                   const std::string& directory) {
  if (parameters.is_null("save")) return;
  const std::string path = directory + "/" + checkpoint_folder(block);
  if (parameters.string("save") == path) return;
  // Who names the folder need not be told of it.
  if (!block.checkpoint_folder)
    parameters.notice(fmt::format("{}: checkpoints go to {}", parameters.where("save"), path));
  parameters.fix("save", Value::of(path));
}

// "([0]*1+[1]*26)" becomes the list that it stands for.
void fix_layer_pattern(Parameters& parameters) {
  const Value* pattern = parameters.values().find("moe_layer_freq");
  if (pattern == nullptr || !pattern->is_string()) return;
  const auto value = evaluate_layer_pattern(pattern->text);
  if (!value)
    raise_rule(
        "moe.pattern",
        "config: {}: not a layer pattern; write an integer or for example \"([0]*1+[1]*26)\"",
        parameters.where("moe_layer_freq"));
  parameters.respell("moe_layer_freq", *value);
}

void fix_skipped_steps(Parameters& parameters) {
  if (parameters.values().find("iterations_to_skip") == nullptr ||
      !parameters.is_null("iterations_to_skip"))
    return;
  Value none;
  none.kind = ValueKind::kList;
  parameters.fix("iterations_to_skip", none);
}

// Megatron reads 0 as "no experts".
void fix_num_experts(Parameters& parameters) {
  if (parameters.optional_integer("num_experts") == std::optional<int64_t>(0))
    parameters.fix("num_experts", Value::null());
}

}  // namespace

void apply_fix_ups(Parameters& parameters, const SevenfoldBlock& block,
                   const std::string& directory) {
  refuse_legacy_keys(parameters);
  fix_num_experts(parameters);
  fix_mock_data(parameters);
  fix_sequence_parallel(parameters);
  fix_save_path(parameters, block, directory);
  fix_layer_pattern(parameters);
  fix_skipped_steps(parameters);
}

void refuse_unsupported_values(Parameters& parameters) {
  for (const KeyInfo& info : all_keys(parameters.framework())) {
    if (info.status != KeyStatus::kNotYet) continue;
    const std::string key(info.name);
    const Value& value = parameters.at(key);
    const Value* enabled = value.find("enabled");
    const bool is_off = value.is_map() && (enabled == nullptr || !enabled->boolean);
    const auto neutral = default_of(info);
    if (value.is_null() || is_off || (neutral && brief(value) == brief(*neutral))) continue;
    if (!info.neutral.empty() && brief(value) == info.neutral) continue;
    parameters.unsupported(
        key, fmt::format("config: {}: {} is not supported yet; use {}={}", parameters.where(key),
                         info.help, key, info.default_yaml));
  }
}

}  // namespace sevenfold::config

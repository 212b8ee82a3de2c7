#include "config/experiment_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "sevenfold/config/rule_error.h"

namespace sevenfold {
namespace {

LoadOptions options_of(const std::string& file, std::vector<std::string> words) {
  LoadOptions options;
  options.file = file;
  options.overrides = std::move(words);
  options.environment = environment_of({});
  return options;
}

std::string without(std::string text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part))
    text.erase(at, part.size());
  return text;
}

}  // namespace

ExperimentFiles::ExperimentFiles() {
  static std::atomic<int> next{0};
  folder_ = testing::TempDir() + "sevenfold-config-" + std::to_string(getpid()) + "-" +
            std::to_string(next++);
  std::filesystem::create_directories(folder_);
}

ExperimentFiles::~ExperimentFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string ExperimentFiles::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path(name);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
  return file.string();
}

std::string small_llama(const std::string& module_yaml, const std::string& top_yaml) {
  return R"(work_group: team
user_name: me
exp_name: small
workspace: out
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: llama2_7B.yaml
    overrides:
      num_layers: 4
      hidden_size: 32
      num_attention_heads: 4
      group_query_attention: true
      num_query_groups: 2
      ffn_hidden_size: 64
      vocab_size: 101
      make_vocab_size_divisible_by: 1
      seq_length: 32
      max_position_embeddings: 64
      micro_batch_size: 1
      global_batch_size: 8
      train_iters: 4
      optimizer: sgd
      sgd_momentum: 0.0
      lr: 0.1
      lr_decay_style: constant
      lr_warmup_iters: 0
      dataloader_type: single
      clip_grad: 0.0
      bf16: false
      train_data_path: D1
)" + module_yaml +
         top_yaml;
}

std::string small_titan(const std::string& module_yaml, const std::string& top_yaml) {
  return R"(work_group: team
user_name: me
exp_name: small
workspace: out
modules:
  pre_trainer:
    framework: torchtitan
    config: pre_trainer.yaml
    model: llama3.1_8B.yaml
    overrides:
      model:
        flavor: debugmodel
        dim: 32
        n_layers: 4
        n_heads: 4
        n_kv_heads: 2
        multiple_of: 64
        vocab_size: 101
      training:
        mock_data: false
        dataset_path: D1
        seq_len: 32
        local_batch_size: 8
        steps: 20
      lr_scheduler:
        warmup_steps: 4
)" + module_yaml +
         top_yaml;
}

config::Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Config load_text(const std::string& text, std::vector<std::string> words) {
  const ExperimentFiles files;
  return load_config(options_of(files.write("run.yaml", text), std::move(words)));
}

config::Experiment load_raw(const std::string& text, std::vector<std::string> words) {
  const ExperimentFiles files;
  return config::load_experiment(
      {files.write("run.yaml", text), std::move(words), "", environment_of({})});
}

std::string error_of(const std::string& text, std::vector<std::string> words) {
  const ExperimentFiles files;
  try {
    load_config(options_of(files.write("run.yaml", text), std::move(words)));
  } catch (const ConfigError& error) {
    return without(error.what(), files.path(""));
  }
  return "";
}

std::string rule_of(const std::string& text, std::vector<std::string> words) {
  const ExperimentFiles files;
  try {
    load_config(options_of(files.write("run.yaml", text), std::move(words)));
  } catch (const RuleError& error) {
    return error.rule() + " " + without(error.what(), files.path(""));
  }
  return "";
}

}  // namespace sevenfold

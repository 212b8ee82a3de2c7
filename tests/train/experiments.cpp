#include "train/experiments.h"

#include "sevenfold/config/load.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dataset/data_sources.h"

namespace sevenfold::testing {

nlohmann::json m0_overrides() {
  return {{"num_layers", 4},
          {"hidden_size", 32},
          {"num_attention_heads", 4},
          {"group_query_attention", true},
          {"num_query_groups", 2},
          {"ffn_hidden_size", 64},
          {"swiglu", true},
          {"normalization", "RMSNorm"},
          {"position_embedding_type", "rope"},
          {"untie_embeddings_and_output_weights", true},
          {"add_bias_linear", false},
          {"vocab_size", 101},
          {"make_vocab_size_divisible_by", 1},
          {"seq_length", 32},
          {"max_position_embeddings", 64},
          {"micro_batch_size", 1},
          {"global_batch_size", 8},
          {"train_iters", 4},
          {"optimizer", "sgd"},
          {"sgd_momentum", 0.0},
          {"lr", 0.1},
          {"lr_decay_style", "constant"},
          {"lr_warmup_iters", 0},
          {"dataloader_type", "single"},
          {"weight_decay", 0.0},
          {"clip_grad", 0.0},
          {"attention_dropout", 0.0},
          {"hidden_dropout", 0.0},
          {"bf16", false},
          {"use_distributed_optimizer", false},
          {"eod_mask_loss", true},
          {"calculate_per_token_loss", true},
          {"seed", 1234}};
}

void write_data_set(const std::string& name, const std::string& prefix) {
  if (name == "D1") return write_d1(prefix);
  if (name == "D3") return write_d3(prefix);
  if (name == "D4") return write_d4(prefix);
  raise<InternalError>("no test data set {}", name);
}

std::string write_experiment(const TemporaryDirectory& directory, const nlohmann::json& overrides,
                             const nlohmann::json& sevenfold) {
  const nlohmann::json module = {{"framework", "megatron"},
                                 {"config", "pre_trainer.yaml"},
                                 {"model", "llama2_7B.yaml"},
                                 {"overrides", overrides}};
  const nlohmann::json file = {{"work_group", "test"},   {"user_name", "test"},
                               {"exp_name", "m0"},       {"workspace", directory / "output"},
                               {"sevenfold", sevenfold}, {"modules", {{"pre_trainer", module}}}};
  const std::string path = directory / "experiment.yaml";
  write_text(path, file.dump(1));  // JSON is YAML
  return path;
}

Experiment m0_experiment(const TemporaryDirectory& directory, const std::string& data_set,
                         int64_t ranks, const nlohmann::json& overrides,
                         const nlohmann::json& sevenfold) {
  const std::string prefix = directory / data_set;
  write_data_set(data_set, prefix);
  nlohmann::json keys = m0_overrides();
  keys["train_data_path"] = prefix;
  keys.update(overrides);
  nlohmann::json block = {
      {"precision", "fp64"}, {"start", "hot"}, {"shuffle", false}, {"eod_token_id", 0}};
  block.update(sevenfold);

  LoadOptions options;
  options.file = write_experiment(directory, keys, block);
  options.ranks = ranks;
  options.environment = [](const std::string&) { return std::nullopt; };
  Experiment experiment{load_config(options), nullptr};
  for (const Unsupported& value : experiment.config.unsupported) throw ConfigError(value.text);
  const Config& config = experiment.config;
  experiment.data = open_data(config.data, {.seq_length = config.model.seq_length,
                                            .vocab_size = config.model.vocab_size,
                                            .seed = config.run.seed,
                                            .train_samples = config.run.train_iters *
                                                             config.batch.global_batch_size,
                                            .valid_samples = 0})
                        .train;
  return experiment;
}

Experiment g0_experiment(const TemporaryDirectory& directory, const std::string& data_set,
                         int64_t ranks, double dropout, const nlohmann::json& overrides) {
  nlohmann::json keys = {{"group_query_attention", false},
                         {"ffn_hidden_size", 128},
                         {"swiglu", false},
                         {"normalization", "LayerNorm"},
                         {"position_embedding_type", "learned_absolute"},
                         {"untie_embeddings_and_output_weights", false},
                         {"add_bias_linear", true},
                         {"max_position_embeddings", 32},
                         {"hidden_dropout", dropout},
                         {"attention_dropout", dropout}};
  keys.update(overrides);
  return m0_experiment(directory, data_set, ranks, keys);
}

}  // namespace sevenfold::testing

#pragma once

#include <string>
#include <vector>

#include "support/pairwise.h"
#include "train/experiments.h"

namespace sevenfold::testing {

// Layouts with tensor parallelism: model, KV heads, dropout, degrees and data.
struct TensorCase {
  std::string model;  // llama, tied, qk_norm, biased, gpt or gpt_tied
  int64_t groups = 2;
  double dropout = 0.0;
  int64_t tp = 2;
  bool sequence = false;
  int64_t dp = 1;
  std::string data_set = "D3";

  std::string name() const {
    return model + "_kv" + std::to_string(groups) + (dropout > 0 ? "_dropout" : "") + "_tp" +
           std::to_string(tp) + (sequence ? "_sp" : "") + "_dp" + std::to_string(dp) + "_" +
           data_set;
  }
};

inline std::vector<TensorCase> tensor_cases(const std::vector<Combination>& combinations) {
  const char* models[] = {"llama", "tied", "qk_norm", "biased", "gpt", "gpt_tied"};
  const int64_t groups[] = {1, 2, 4}, degrees[] = {2, 4, 8};
  std::vector<TensorCase> cases;
  for (const Combination& c : combinations)
    cases.push_back({.model = models[c[0]],
                     .groups = groups[c[1]],
                     .dropout = c[2] == 0 ? 0.0 : 0.1,
                     .tp = degrees[c[3]],
                     .sequence = c[4] == 1,
                     .dp = c[5] == 0 ? 1 : 2,
                     .data_set = c[6] == 0 ? "D1" : "D3"});
  return cases;
}
inline std::vector<Combination> all_tensor_combinations() {
  return all_combinations({6, 3, 2, 3, 2, 2, 2});
}

// Two samples a micro batch; 8 heads where 8 ranks share them.
inline Experiment tensor_experiment(const TemporaryDirectory& directory, const TensorCase& c,
                                    const nlohmann::json& more = nlohmann::json::object(),
                                    const nlohmann::json& sevenfold = nlohmann::json::object()) {
  nlohmann::json keys = {{"tensor_model_parallel_size", c.tp},
                         {"sequence_parallel", c.sequence},
                         {"num_attention_heads", c.tp == 8 ? 8 : 4},
                         {"group_query_attention", true},
                         {"num_query_groups", c.groups},
                         {"micro_batch_size", 2},
                         {"global_batch_size", 8},
                         {"hidden_dropout", c.dropout},
                         {"attention_dropout", c.dropout},
                         {"qk_layernorm", c.model == "qk_norm"}};
  const bool is_gpt = c.model.starts_with("gpt");
  if (!is_gpt) keys["add_bias_linear"] = c.model == "biased";
  keys["untie_embeddings_and_output_weights"] = !c.model.ends_with("tied");
  keys.update(more);
  return is_gpt ? g0_experiment(directory, c.data_set, c.tp * c.dp, c.dropout, keys)
                : m0_experiment(directory, c.data_set, c.tp * c.dp, keys, sevenfold);
}

}  // namespace sevenfold::testing

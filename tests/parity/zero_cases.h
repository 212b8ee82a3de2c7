#pragma once

#include <string>
#include <vector>

#include "support/pairwise.h"
#include "train/experiments.h"

namespace sevenfold::testing {

// Layouts of M0 with ZeRO: stage, degrees, accumulation and buckets.
struct ZeroCase {
  int64_t stage = 1;
  int64_t dp = 2;
  int64_t accumulation = 1;
  int64_t tp = 1;
  bool sequence = false;
  bool tied = false;
  int64_t bucket_elements = 40'000'000;

  std::string name() const {
    return "stage" + std::to_string(stage) + "_dp" + std::to_string(dp) + "_acc" +
           std::to_string(accumulation) + "_tp" + std::to_string(tp) + (sequence ? "_sp" : "") +
           (tied ? "_tied" : "") + (bucket_elements == 1 ? "_layers" : "");
  }
};

inline std::vector<ZeroCase> zero_cases(const std::vector<Combination>& combinations) {
  std::vector<ZeroCase> cases;
  for (const Combination& c : combinations)
    cases.push_back({.stage = static_cast<int64_t>(c[0]),
                     .dp = static_cast<int64_t>(c[1]) + 2,
                     .accumulation = c[2] == 0 ? 1 : 4,
                     .tp = c[3] == 0 ? 1 : 2,
                     .sequence = c[3] == 2,
                     .tied = c[4] == 1,
                     .bucket_elements = c[5] == 0 ? 1 : 40'000'000});
  return cases;
}
inline std::vector<Combination> all_zero_combinations() {
  return all_combinations({3, 3, 2, 3, 2, 2});
}

inline const char* strategy_of(int64_t stage) {
  return stage == 0 ? "no_shard" : stage == 1 ? "optim" : "optim_grads";
}

inline Experiment zero_experiment(const TemporaryDirectory& directory, const ZeroCase& c,
                                  const nlohmann::json& more = nlohmann::json::object(),
                                  const nlohmann::json& sevenfold = nlohmann::json::object()) {
  nlohmann::json keys = {{"data_parallel_sharding_strategy", strategy_of(c.stage)},
                         {"tensor_model_parallel_size", c.tp},
                         {"sequence_parallel", c.sequence},
                         {"global_batch_size", c.dp * c.accumulation},
                         {"untie_embeddings_and_output_weights", !c.tied},
                         {"ddp_bucket_size", c.bucket_elements}};
  keys.update(more);
  return m0_experiment(directory, "D3", c.tp * c.dp, keys, sevenfold);
}

}  // namespace sevenfold::testing

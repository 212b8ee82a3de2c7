#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/pairwise.h"
#include "train/experiments.h"

namespace sevenfold::testing {

// Pairs of a number (a degree or a stage) and of sets of shards.
using Sets = std::vector<std::pair<int64_t, int64_t>>;

// Layouts of M0 with ZeRO: stage, degrees, accumulation, buckets, and what runs when.
struct ZeroCase {
  int64_t stage = 1;
  int64_t dp = 2;
  int64_t accumulation = 1;
  int64_t tp = 1;
  bool sequence = false;
  bool tied = false;
  int64_t bucket_elements = 40'000'000;  // stages 0 to 2
  int64_t replicate = 1;                 // sets of shards
  int64_t recomputed = 0;  // decoder layers of a group that backward runs again; 0: none
  bool overlap = false;    // stages 1 and 2
  bool reshard = true;     // stage 3

  std::string name() const {
    return "stage" + std::to_string(stage) + "_dp" + std::to_string(dp) +
           (replicate > 1 ? "_sets" + std::to_string(replicate) : "") + "_acc" +
           std::to_string(accumulation) + "_tp" + std::to_string(tp) + (sequence ? "_sp" : "") +
           (tied ? "_tied" : "") + (bucket_elements == 1 ? "_layers" : "") +
           (recomputed > 0 ? "_again" + std::to_string(recomputed) : "") +
           (overlap ? "_overlap" : "") + (reshard ? "" : "_whole");
  }
};

inline ZeroCase zero_case(const Combination& c) {
  const auto stage = static_cast<int64_t>(c[0]);
  return {.stage = stage,
          .dp = c[1] == 3 ? 4 : static_cast<int64_t>(c[1]) + 2,
          .accumulation = c[2] == 0 ? 1 : 4,
          .tp = c[3] == 0 ? 1 : 2,
          .sequence = c[3] == 2,
          .tied = c[4] == 1,
          .bucket_elements = stage < 3 && c[6] == 1 ? 1 : 40'000'000,
          .replicate = c[1] == 3 ? 2 : 1,
          .recomputed = c[5] == 2 ? 3 : static_cast<int64_t>(c[5]),
          .overlap = (stage == 1 || stage == 2) && c[7] == 1,
          .reshard = stage < 3 || c[7] == 0};
}

// Stage; DP 2, 3, 4 or two sets of two; accumulation; TP, TP with SP; tied; groups of recomputed
// layers; a bucket per layer; overlap, in stage 3 no resharding.
inline std::vector<Combination> all_zero_combinations() {
  std::vector<Combination> all;
  for (const Combination& c : all_combinations({4, 4, 2, 3, 2, 3, 2, 2})) {
    const bool has_sets = c[0] > 0 || c[1] < 3;      // without shards there are none
    const bool has_switch = c[0] > 0 || c[7] == 0;   // nor gathers
    const bool has_buckets = c[0] < 3 || c[6] == 0;  // a layer is a bucket anyway
    if (has_sets && has_switch && has_buckets) all.push_back(c);
  }
  return all;
}

inline std::vector<ZeroCase> zero_cases(const std::vector<Combination>& combinations) {
  std::vector<ZeroCase> cases;
  for (const Combination& c : combinations) cases.push_back(zero_case(c));
  return cases;
}

inline const char* strategy_of(int64_t stage) {
  constexpr const char* kNames[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
  return kNames[stage];
}

// Sets of weight shards are asked for in FSDP2's words, as no others have them.
inline nlohmann::json zero_keys(const ZeroCase& c) {
  const bool is_fsdp2 = c.stage == 3 && c.replicate > 1;
  nlohmann::json keys = {{"data_parallel_sharding_strategy", strategy_of(is_fsdp2 ? 0 : c.stage)},
                         {"use_torch_fsdp2", is_fsdp2},
                         {"tensor_model_parallel_size", c.tp},
                         {"sequence_parallel", c.sequence},
                         {"global_batch_size", c.dp * c.accumulation},
                         {"untie_embeddings_and_output_weights", !c.tied},
                         {"ddp_bucket_size", c.bucket_elements},
                         {"overlap_grad_reduce", c.overlap},
                         {"overlap_param_gather", c.overlap},
                         {"torch_fsdp2_reshard_after_forward", c.reshard}};
  keys[is_fsdp2 ? "data_parallel_replicate_degree" : "num_distributed_optimizer_instances"] =
      c.replicate;
  if (c.recomputed > 0)
    keys.update({{"recompute_granularity", "full"},
                 {"recompute_method", "uniform"},
                 {"recompute_num_layers", c.recomputed}});
  return keys;
}

inline Experiment zero_experiment(const TemporaryDirectory& directory, const ZeroCase& c,
                                  const nlohmann::json& more = nlohmann::json::object(),
                                  const nlohmann::json& sevenfold = nlohmann::json::object()) {
  nlohmann::json keys = zero_keys(c);
  keys.update(more);
  return m0_experiment(directory, "D3", c.tp * c.dp, keys, sevenfold);
}

}  // namespace sevenfold::testing

#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sevenfold/schedule/algorithms.h"
#include "support/pairwise.h"
#include "train/experiments.h"

namespace sevenfold::testing {

// How layers lie on the S stages.
enum class StageCut {
  kEven,
  kUneven,
  kBareEnds
};  // 1 each; 2 on the second; none on the outer two

// Layouts of M0 with pipeline stages.
struct PipelineCase {
  std::string algorithm = "1f1b";
  int64_t pp = 2;
  int64_t microbatches = 4;
  bool tied = false;
  StageCut cut = StageCut::kEven;
  int64_t dp = 1;
  int64_t tp = 1;  // with sequence parallelism
  int64_t zero = 0;
  bool recompute = false;

  std::string name() const {
    std::string text =
        algorithm + "_pp" + std::to_string(pp) + "_m" + std::to_string(microbatches) +
        (tied ? "_tied" : "") + (cut == StageCut::kUneven ? "_uneven" : "") +
        (cut == StageCut::kBareEnds ? "_bare" : "") + "_dp" + std::to_string(dp) + "_tp" +
        std::to_string(tp) + "_zero" + std::to_string(zero) + (recompute ? "_again" : "");
    for (char& c : text)
      if (c == '-') c = '_';
    return text;
  }
};

inline std::vector<StageLayers> cut_stages(int64_t num_stages, StageCut cut) {
  std::vector<StageLayers> stages;
  int64_t first = 0;
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    const bool is_end = stage == 0 || stage + 1 == num_stages;
    int64_t layers = 1;
    if (cut == StageCut::kUneven && stage == 1) layers = 2;
    if (cut == StageCut::kBareEnds) layers = is_end ? 0 : 1;
    stages.push_back({first, layers, stage == 0, stage + 1 == num_stages});
    first += layers;
  }
  return stages;
}

inline int64_t num_stages_of(const PipelineCase& c) {
  const Algorithm& algorithm = find_algorithm(c.algorithm);
  return algorithm.placement == Placement::kBidirectional ? c.pp : c.pp * algorithm.default_chunks;
}

// Whether the algorithm has a schedule for these numbers, and the cut layers for a model. Some
// algorithms search, so each is asked once.
inline bool is_possible(const PipelineCase& c) {
  if (c.cut == StageCut::kBareEnds && num_stages_of(c) == 2) return false;
  static std::map<std::tuple<std::string, int64_t, int64_t>, bool> known;
  const auto [entry, is_unknown] = known.try_emplace({c.algorithm, c.pp, c.microbatches}, false);
  if (!is_unknown) return entry->second;
  entry->second = try_generate(find_algorithm(c.algorithm),
                               {.num_ranks = c.pp, .num_microbatches = c.microbatches})
                      .has_value();
  return entry->second;
}

inline std::vector<std::string> pipeline_algorithms() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms())
    if (!algorithm.chooses) names.push_back(algorithm.name);
  return names;
}

inline PipelineCase pipeline_case(const Combination& c) {
  const int64_t pp = c[1] == 0 ? 2 : 4;
  const int64_t microbatches[] = {1, 3, pp, 2 * pp, 3 * pp + 1};
  return {.algorithm = pipeline_algorithms()[c[0]],
          .pp = pp,
          .microbatches = microbatches[c[2]],
          .tied = c[3] == 1,
          .cut = static_cast<StageCut>(c[4]),
          .dp = c[5] == 0 ? 1 : 2,
          .tp = c[6] == 0 ? 1 : 2,
          .zero = static_cast<int64_t>(c[7]),
          .recompute = c[8] == 1};
}

// Without gpipe of one micro batch, whose table is that of 1f1b.
inline std::vector<Combination> all_pipeline_combinations() {
  std::vector<Combination> possible;
  for (Combination& c : all_combinations({pipeline_algorithms().size(), 2, 5, 2, 3, 2, 2, 4, 2})) {
    const bool shards_nothing = c[5] == 0 && c[7] > 0;
    const bool is_1f1b = pipeline_algorithms()[c[0]] == "gpipe" && c[2] == 0;
    if (!shards_nothing && !is_1f1b && is_possible(pipeline_case(c)))
      possible.push_back(std::move(c));
  }
  return possible;
}

inline Experiment pipeline_experiment(const TemporaryDirectory& directory, const PipelineCase& c,
                                      const nlohmann::json& more = nlohmann::json::object(),
                                      const nlohmann::json& sevenfold = nlohmann::json::object()) {
  const std::vector<StageLayers> stages = cut_stages(num_stages_of(c), c.cut);
  nlohmann::json keys = {{"num_layers", stages.back().first_layer + stages.back().num_layers},
                         {"tensor_model_parallel_size", c.tp},
                         {"sequence_parallel", c.tp > 1},
                         {"global_batch_size", c.dp * c.microbatches},
                         {"untie_embeddings_and_output_weights", !c.tied}};
  keys.update(more);
  Experiment experiment = m0_experiment(directory, "D3", c.tp * c.dp, keys, sevenfold);
  Config& config = experiment.config;
  config.mesh.pp = c.pp;
  config.parallel.zero = static_cast<ZeroStage>(c.zero);
  config.pipeline.algorithm = c.algorithm;
  config.pipeline.num_chunks = find_algorithm(c.algorithm).default_chunks;
  config.pipeline.stages = stages;
  if (c.recompute) config.recompute = {.layers = RecomputedLayers::kUniform, .num_layers = 1};
  return experiment;
}

}  // namespace sevenfold::testing

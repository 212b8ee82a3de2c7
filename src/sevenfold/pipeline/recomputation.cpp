#include "sevenfold/pipeline/recomputation.h"

#include <algorithm>

namespace sevenfold {
namespace {

// Of the decoder layer at `index` of the chunk: the index of the first layer of its group.
std::optional<int64_t> first_of_group(const RecomputeConfig& config, const DecoderLayers& layers,
                                      int64_t index) {
  switch (config.layers) {
    case RecomputedLayers::kNone:
      return std::nullopt;
    case RecomputedLayers::kUniform:
      return index / config.num_layers * config.num_layers;
    case RecomputedLayers::kBlock:
      return index < config.num_layers ? std::optional(index) : std::nullopt;
    case RecomputedLayers::kNamed:
      break;
  }
  const bool is_named =
      std::binary_search(config.layer_ids.begin(), config.layer_ids.end(), layers.first_id + index);
  return is_named ? std::optional(index) : std::nullopt;
}

}  // namespace

RecomputationPlan recomputation_plan(const RecomputeConfig& config, const DecoderLayers& layers) {
  RecomputationPlan plan(layers.position);
  for (int64_t index = 0; index < layers.count; ++index) {
    const std::optional<int64_t> first = first_of_group(config, layers, index);
    plan.push_back(first ? std::optional(layers.position + static_cast<size_t>(*first))
                         : std::nullopt);
  }
  return plan;
}

}  // namespace sevenfold

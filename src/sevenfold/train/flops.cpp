#include "sevenfold/train/flops.h"

#include <algorithm>

#include "sevenfold/pipeline/recomputation.h"

namespace sevenfold {
namespace {

double score_flops_per_token(const ModelConfig& model) {
  return 4.0 *
         static_cast<double>(model.seq_length * model.num_attention_heads * model.kv_channels);
}

double feed_forward_flops_per_token(const ModelConfig& model) {
  const double matrices = is_gated(model.activation) ? 3.0 : 2.0;
  return 2.0 * matrices * static_cast<double>(model.hidden_size * model.ffn_hidden_size);
}

double layer_flops_per_token(const ModelConfig& model) {
  const auto hidden = static_cast<double>(model.hidden_size);
  const auto head_size = static_cast<double>(model.kv_channels);
  const double query_width = static_cast<double>(model.num_attention_heads) * head_size;
  const double key_width = static_cast<double>(model.num_query_groups) * head_size;
  const double attention_weights = hidden * (2.0 * query_width + 2.0 * key_width);
  return 2.0 * attention_weights + feed_forward_flops_per_token(model) +
         score_flops_per_token(model);
}

int64_t num_recomputed_layers(const Config& config) {
  std::vector<StageLayers> stages = config.pipeline.stages;
  if (stages.empty()) stages = {{.num_layers = config.model.num_layers}};
  int64_t count = 0;
  for (const StageLayers& stage : stages) {
    const RecomputationPlan plan = recomputation_plan(
        config.recompute, {.first_id = stage.first_layer, .count = stage.num_layers});
    count +=
        std::count_if(plan.begin(), plan.end(), [](const auto& from) { return from.has_value(); });
  }
  return count;
}

}  // namespace

double forward_flops_per_token(const ModelConfig& model) {
  const double head =
      2.0 * static_cast<double>(model.hidden_size) * static_cast<double>(model.vocab_size);
  return static_cast<double>(model.num_layers) * layer_flops_per_token(model) + head;
}

double step_flops(const ModelConfig& model, int64_t global_batch_size) {
  const auto tokens = static_cast<double>(global_batch_size * model.seq_length);
  return 3.0 * tokens * forward_flops_per_token(model);
}

double hardware_step_flops(const Config& config, int64_t global_batch_size) {
  const auto tokens = static_cast<double>(global_batch_size * config.model.seq_length);
  const auto whole_layers = static_cast<double>(num_recomputed_layers(config));
  double again = whole_layers * layer_flops_per_token(config.model);
  const auto layers = static_cast<double>(config.model.num_layers);
  if (config.recompute.core_attention) again += layers * score_flops_per_token(config.model);
  if (config.recompute.feed_forward) again += layers * feed_forward_flops_per_token(config.model);
  return step_flops(config.model, global_batch_size) + tokens * again;
}

}  // namespace sevenfold

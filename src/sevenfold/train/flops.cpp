#include "sevenfold/train/flops.h"

namespace sevenfold {

double forward_flops_per_token(const ModelConfig& model) {
  const auto hidden = static_cast<double>(model.hidden_size);
  const auto head_size = static_cast<double>(model.kv_channels);
  const double query_width = static_cast<double>(model.num_attention_heads) * head_size;
  const double key_width = static_cast<double>(model.num_query_groups) * head_size;
  const double attention_weights = hidden * (2.0 * query_width + 2.0 * key_width);
  const double mlp_matrices = is_gated(model.activation) ? 3.0 : 2.0;
  const double mlp_weights = mlp_matrices * hidden * static_cast<double>(model.ffn_hidden_size);
  const double scores = 4.0 * static_cast<double>(model.seq_length) * query_width;
  const double layer = 2.0 * (attention_weights + mlp_weights) + scores;
  const double head = 2.0 * hidden * static_cast<double>(model.vocab_size);
  return static_cast<double>(model.num_layers) * layer + head;
}

double step_flops(const ModelConfig& model, int64_t global_batch_size) {
  const auto tokens = static_cast<double>(global_batch_size * model.seq_length);
  return 3.0 * tokens * forward_flops_per_token(model);
}

}  // namespace sevenfold

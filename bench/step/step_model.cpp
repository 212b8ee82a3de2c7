#include "bench/step/step_model.h"

#include <algorithm>

#include "sevenfold/nn/attention.h"

namespace sevenfold::bench {

Config step_config(Precision precision) {
  Config config;
  config.model = {.num_layers = 8,
                  .hidden_size = 512,
                  .ffn_hidden_size = 1408,
                  .num_attention_heads = 8,
                  .num_query_groups = 8,
                  .kv_channels = 64,
                  .vocab_size = 8192,
                  .seq_length = 512,
                  .max_position_embeddings = 512};
  config.batch = {.micro_batch_size = 2, .global_batch_size = 2, .num_microbatches = 1};
  config.optimizer = {.kind = OptimizerKind::kAdamW,
                      .weight_decay = 0.1,
                      .end_weight_decay = 0.1,
                      .adam_beta1 = 0.9,
                      .adam_beta2 = 0.95,
                      .adam_eps = 1e-8,
                      .clip_grad = 1.0};
  config.learning_rate = {.lr = 1e-4, .min_lr = 1e-4, .style = DecayStyle::kConstant};
  config.run.precision = precision;
  config.run.start = StartKind::kHot;
  config.run.train_iters = 1'000'000;
  return config;
}

void StepTokens::read(int64_t index, std::span<int64_t> tokens) const {
  for (size_t t = 0; t < tokens.size(); ++t) {
    const int64_t x = (index % 1000 + 1) * 1'000'003 + static_cast<int64_t>(t) * 7919;
    tokens[t] = (x * x >> 8) % model_.vocab_size;
  }
}

double step_product_flops(const Config& config) {
  const ModelConfig& m = config.model;
  const int64_t tokens = config.batch.global_batch_size * m.seq_length;
  const int64_t heads_width = m.num_attention_heads * m.kv_channels;
  const int64_t kv_width = m.num_query_groups * m.kv_channels;
  const int64_t layer_weights =
      2 * m.hidden_size * (heads_width + kv_width) + 3 * m.hidden_size * m.ffn_hidden_size;
  const int64_t weights = m.num_layers * layer_weights + m.vocab_size * m.hidden_size;
  int64_t scores = 0;  // of one head and sample
  for (int64_t first = 0; first < m.seq_length; first += kAttentionBlock) {
    const int64_t end = std::min(first + kAttentionBlock, m.seq_length);
    scores += (end - first) * end;
  }
  const int64_t attention =
      7 * 2 * scores * heads_width * m.num_layers * config.batch.global_batch_size;
  return static_cast<double>(6 * weights * tokens + attention);
}

}  // namespace sevenfold::bench

#include "sevenfold/train/run_position.h"

#include <algorithm>

#include "sevenfold/core/error.h"

namespace sevenfold {

int64_t num_microbatches(const Config& config, int64_t consumed) {
  const int64_t size = global_batch_size(config.batch, consumed);
  const int64_t unit = config.batch.micro_batch_size * config.mesh.dp;
  SEVENFOLD_CHECK(size % unit == 0, "global batch {} after {} samples, micro batch {}, dp {}", size,
                  consumed, config.batch.micro_batch_size, config.mesh.dp);
  return size / unit;
}

int64_t num_iterations(const Config& config) {
  if (config.run.train_samples == 0) return config.run.train_iters;
  const int64_t samples = config.run.train_samples;
  if (config.batch.schedule.empty()) return samples / config.batch.global_batch_size;
  const std::vector<BatchStage>& stages = config.batch.schedule;
  int64_t iterations = 0, consumed = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    // Until the next threshold is reached, as far as the samples last.
    const int64_t size = stages[i].global_batch_size;
    const int64_t lasting = (samples - consumed) / size;
    int64_t steps = lasting;
    if (i + 1 < stages.size()) {
      const int64_t missing = std::max<int64_t>(0, stages[i + 1].from_samples - consumed);
      steps = (missing + size - 1) / size;
    }
    iterations += std::min(steps, lasting);
    consumed += std::min(steps, lasting) * size;
    if (lasting < steps) break;
  }
  return iterations;
}

int64_t run_samples(const Config& config) {
  if (config.run.train_samples > 0) return config.run.train_samples;
  return config.run.train_iters * config.batch.global_batch_size;
}

}  // namespace sevenfold

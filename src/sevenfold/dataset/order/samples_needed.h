#pragma once

#include <cstdint>

namespace sevenfold {

// How many samples a run asks of its data sets. Part of Megatron's order: the number decides how
// many epochs are shuffled together.
struct RunLength {
  int64_t train_iters = 0;
  int64_t global_batch_size = 1;
  int64_t eval_interval = 0;  // 0: no validation
  int64_t eval_iters = 0;
};

int64_t train_samples_needed(const RunLength& run);
// Evaluations are counted as Megatron does: one more than fit, always.
int64_t valid_samples_needed(const RunLength& run);

}  // namespace sevenfold

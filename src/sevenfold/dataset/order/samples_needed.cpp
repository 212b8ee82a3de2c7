#include "sevenfold/dataset/order/samples_needed.h"

namespace sevenfold {

int64_t train_samples_needed(const RunLength& run) {
  return run.train_iters * run.global_batch_size;
}

int64_t valid_samples_needed(const RunLength& run) {
  if (run.eval_interval <= 0) return 0;
  const int64_t evaluations = run.train_iters / run.eval_interval + 1;
  return evaluations * run.eval_iters * run.global_batch_size;
}

}  // namespace sevenfold

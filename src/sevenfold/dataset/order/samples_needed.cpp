#include "sevenfold/dataset/order/samples_needed.h"

#include <algorithm>

namespace sevenfold {

int64_t train_samples_needed(const RunLength& run) {
  return run.train_iters * run.global_batch_size;
}

int64_t valid_samples_needed(const RunLength& run) {
  if (run.eval_interval <= 0) return 0;
  const int64_t evaluations = std::max<int64_t>(
      0, run.train_iters / run.eval_interval + 1 - run.start_eval_at_iter / run.eval_interval);
  const int64_t batch =
      run.eval_global_batch_size > 0 ? run.eval_global_batch_size : run.global_batch_size;
  return evaluations * run.eval_iters * batch;
}

}  // namespace sevenfold

#include "sevenfold/dataset/order/samples_needed.h"

namespace sevenfold {

std::optional<int64_t> valid_samples_needed(const RunConfig& run, const BatchConfig& batch) {
  if (run.full_validation) return std::nullopt;
  const int64_t one_evaluation = run.eval_iters * batch.global_batch_size;
  if (run.skip_train) return one_evaluation;
  if (run.eval_interval <= 0) return 0;
  return (run.train_iters / run.eval_interval + 1) * one_evaluation;
}

int64_t test_samples_needed(const RunConfig& run, const BatchConfig& batch) {
  return run.eval_iters * batch.global_batch_size;
}

}  // namespace sevenfold

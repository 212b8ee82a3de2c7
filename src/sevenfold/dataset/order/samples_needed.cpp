#include "sevenfold/dataset/order/samples_needed.h"

#include <algorithm>

namespace sevenfold {
namespace {

int64_t samples_per_evaluation(const RunLength& run) {
  return run.eval_iters *
         (run.eval_global_batch_size > 0 ? run.eval_global_batch_size : run.global_batch_size);
}

}  // namespace

int64_t train_samples_needed(const RunLength& run) {
  return run.train_samples > 0 ? run.train_samples : run.train_iters * run.global_batch_size;
}

std::optional<int64_t> valid_samples_needed(const RunLength& run) {
  if (run.full_validation) return std::nullopt;
  if (run.skip_train) return samples_per_evaluation(run);
  if (run.eval_interval <= 0) return 0;
  const int64_t evaluations =
      run.train_iters / run.eval_interval + 1 - run.start_eval_at_iter / run.eval_interval;
  return std::max<int64_t>(0, evaluations) * samples_per_evaluation(run);
}

int64_t test_samples_needed(const RunLength& run) {
  return samples_per_evaluation(run);
}

int64_t valid_samples_consumed(const RunLength& run, int64_t iteration) {
  if (run.eval_interval <= 0 || run.skip_train) return 0;
  const int64_t evaluations =
      iteration / run.eval_interval - run.start_eval_at_iter / run.eval_interval;
  return std::max<int64_t>(0, evaluations) * samples_per_evaluation(run);
}

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <optional>

namespace sevenfold {

// How many samples a run asks of its data sets. Part of Megatron's order: the number decides how
// many epochs are shuffled together.
struct RunLength {
  int64_t train_iters = 0;
  int64_t train_samples = 0;      // 0: train_iters global batches
  int64_t global_batch_size = 1;  // that of the end: a batch schedule does not lower the number
  int64_t eval_interval = 0;      // 0: no validation during training
  int64_t eval_iters = 0;
  int64_t eval_global_batch_size = 0;  // 0: global_batch_size
  int64_t start_eval_at_iter = 0;
  bool skip_train = false;       // one evaluation, no training
  bool full_validation = false;  // each evaluation reads the whole set
};

int64_t train_samples_needed(const RunLength& run);
// Evaluations are counted as Megatron does: one more than fit, always. None: the whole set, once.
std::optional<int64_t> valid_samples_needed(const RunLength& run);
int64_t test_samples_needed(const RunLength& run);

// Where validation goes on in its stream of samples when a run resumes: after the evaluations that
// `iteration` steps have seen. One stream runs through training.
int64_t valid_samples_consumed(const RunLength& run, int64_t iteration);

}  // namespace sevenfold

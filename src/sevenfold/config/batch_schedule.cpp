#include "sevenfold/config/batch_schedule.h"

#include <algorithm>
#include <limits>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

// Stage by stage from the start: `take(size, most)` gives how many steps of `size` samples it takes
// of the `most` that start in the stage. Taking fewer ends the walk.
template <typename Take>
void walk_stages(const BatchConfig& batch, Take&& take) {
  int64_t consumed = 0;
  for (size_t i = 0;; ++i) {
    const int64_t size =
        batch.schedule.empty() ? batch.global_batch_size : batch.schedule[i].global_batch_size;
    int64_t most = kNoEnd;
    if (i + 1 < batch.schedule.size()) {
      const int64_t left = std::max<int64_t>(0, batch.schedule[i + 1].from_samples - consumed);
      most = (left + size - 1) / size;
    }
    const int64_t taken = take(size, most);
    if (taken < most) return;
    consumed += taken * size;
  }
}

}  // namespace

int64_t global_batch_size(const BatchConfig& batch, int64_t consumed) {
  SEVENFOLD_CHECK(consumed >= 0, "{} samples", consumed);
  int64_t size = batch.global_batch_size;
  for (const BatchStage& stage : batch.schedule)
    if (stage.from_samples <= consumed) size = stage.global_batch_size;
  return size;
}

int64_t samples_of_steps(const BatchConfig& batch, int64_t steps) {
  int64_t samples = 0;
  walk_stages(batch, [&](int64_t size, int64_t most) {
    const int64_t taken = std::min(steps, most);
    steps -= taken;
    samples += taken * size;
    return taken;
  });
  return samples;
}

int64_t whole_steps(const BatchConfig& batch, int64_t samples) {
  int64_t steps = 0;
  walk_stages(batch, [&](int64_t size, int64_t most) {
    const int64_t taken = std::min(samples / size, most);
    samples -= taken * size;
    steps += taken;
    return taken;
  });
  return steps;
}

int64_t run_samples(const RunConfig& run, const BatchConfig& batch) {
  return run.train_samples > 0 ? run.train_samples : run.train_iters * batch.global_batch_size;
}

}  // namespace sevenfold

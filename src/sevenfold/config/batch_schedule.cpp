#include "sevenfold/config/batch_schedule.h"

#include "sevenfold/core/error.h"

namespace sevenfold {

int64_t global_batch_size(const BatchConfig& batch, int64_t consumed) {
  SEVENFOLD_CHECK(consumed >= 0, "{} samples", consumed);
  int64_t size = batch.global_batch_size;
  for (const BatchStage& stage : batch.schedule)
    if (stage.from_samples <= consumed) size = stage.global_batch_size;
  return size;
}

}  // namespace sevenfold

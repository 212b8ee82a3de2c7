#include "sevenfold/train/run_position.h"

#include "sevenfold/config/batch_schedule.h"
#include "sevenfold/core/error.h"

namespace sevenfold {

int64_t num_microbatches(const Config& config, int64_t consumed) {
  const int64_t size = global_batch_size(config.batch, consumed);
  const int64_t unit = config.batch.micro_batch_size * config.mesh.dp;
  SEVENFOLD_CHECK(size % unit == 0, "global batch {} after {} samples, micro batch {}, dp {}", size,
                  consumed, config.batch.micro_batch_size, config.mesh.dp);
  return size / unit;
}

}  // namespace sevenfold

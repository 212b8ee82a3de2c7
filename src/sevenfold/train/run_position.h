#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Where a run stands. Everything that depends on the past of a run is a function of these counts
// (and of what optimizer and loss scale keep).
struct RunPosition {
  int64_t iteration = 0;         // steps done, skipped ones too
  int64_t consumed_samples = 0;  // that these steps read
  // Samples of the steps that changed weights: the clock of learning rate and weight decay. Skipped
  // steps do not turn it (Megatron).
  int64_t stepped_samples = 0;
  int64_t consumed_valid_samples = 0;
};

// Micro batches, on each dp rank, of the step that starts after `consumed` samples. That micro
// batches and ranks divide every batch of a schedule is a rule of config/.
int64_t num_microbatches(const Config& config, int64_t consumed);

}  // namespace sevenfold

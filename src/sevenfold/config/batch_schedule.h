#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Global batch of a step that starts after `consumed`: that of the last stage reached.
int64_t global_batch_size(const BatchConfig& batch, int64_t consumed);

// Samples that `steps` steps from the start read.
int64_t samples_of_steps(const BatchConfig& batch, int64_t steps);
// Whole steps from the start that `samples` samples make.
int64_t whole_steps(const BatchConfig& batch, int64_t samples);

// Samples of the whole run; with train_iters and a batch schedule counted with the last batch size,
// as Megatron counts them for data order and schedules.
int64_t run_samples(const RunConfig& run, const BatchConfig& batch);

}  // namespace sevenfold

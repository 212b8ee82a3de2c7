#pragma once

#include <cstdint>
#include <optional>

#include "sevenfold/config/config.h"

namespace sevenfold {

// How many samples a run asks of its validation and test data (of its training data: run_samples).
// Part of Megatron's order: the number decides how many epochs are shuffled together. The global
// batch is that of the run's end.

// Evaluations are counted as Megatron does: one more than fit, always. None: the whole set, once.
std::optional<int64_t> valid_samples_needed(const RunConfig& run, const BatchConfig& batch);
// The pass over the test set after the last step.
int64_t test_samples_needed(const RunConfig& run, const BatchConfig& batch);

}  // namespace sevenfold

#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Global batch of a step that starts after `consumed`: that of the last stage reached.
int64_t global_batch_size(const BatchConfig& batch, int64_t consumed);

}  // namespace sevenfold

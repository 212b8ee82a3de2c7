#pragma once

#include "sevenfold/config/config.h"

namespace sevenfold {

// Largest number of ranks that are threads of one process.
inline constexpr int64_t kMaxThreadRanks = 1024;

// Bytes of weights, gradients and optimizer states of all ranks, each part of the model counted as
// the fullest, and what ZeRO shards once per part: what the simulated cluster needs before it
// computes anything.
double resident_bytes(const Config& config);

// Throws ConfigError for a run that this machine cannot hold: more ranks than threads make sense,
// or more memory than it has.
void check_fits_machine(const Config& config);

}  // namespace sevenfold

#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Learning rate after `consumed_samples` samples, per sample step. A training step uses the rate
// for the samples consumed before it, so with a warm-up from 0 the first step has rate 0.
//   n <= warmup (warmup > 0)   warmup_init + (lr - warmup_init) n / warmup
//   constant                   lr
//   n > decay                  min_lr
//   otherwise                  min_lr + (lr - min_lr) c, r = (n - warmup) / (decay - warmup),
//                              linear c = 1 - r, cosine c = (1 + cos(pi r)) / 2
// Source: Megatron-LM, OptimizerParamScheduler.get_lr.
double learning_rate(const LearningRateConfig& config, int64_t consumed_samples);

}  // namespace sevenfold

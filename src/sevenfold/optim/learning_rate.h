#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Schedules of the optimizer, as functions of n = samples of the steps taken so far. A training
// step uses the value for the samples *before* it, so with a warm-up from 0 the first step has rate
// 0. Source: Megatron-LM, OptimizerParamScheduler.

// Learning rate after n samples.
//   n <= warmup (warmup > 0)   warmup_init + (lr - warmup_init) n / warmup
//   constant                   lr
//   n > decay                  min_lr
//   inverse-square-root        max(min_lr, lr sqrt(max(warmup, 1)) / sqrt(max(n, 1)))
//   otherwise                  min_lr + (lr - min_lr) c, r = (n - warmup) / (decay - warmup):
//     linear c = 1 - r, cosine c = (1 + cos(pi r)) / 2
//     WSD    c = 1 until decay - wsd, then with r = (n - (decay - wsd)) / wsd: linear and cosine as
//            above, exponential 2 0.5^r - 1, minus_sqrt 1 - sqrt(r)
double learning_rate(const LearningRateConfig& config, int64_t num_samples);

// Weight decay after n samples: from weight_decay to end_weight_decay over the `run_samples` of the
// whole run (not the samples of the rate's decay), r = n / run_samples: linear share r, cosine
// (1 + cos(pi (1 - r))) / 2; then it stays.
double weight_decay(const OptimizerConfig& config, int64_t num_samples, int64_t run_samples);

}  // namespace sevenfold

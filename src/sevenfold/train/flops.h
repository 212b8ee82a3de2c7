#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Model FLOPs: the arithmetic that the model needs, a multiplication and an addition as 2, whatever
// the engine really does; recomputation does not count (see hardware_step_flops), nor do norms,
// biases, activations, rotary angles, softmax, dropout and the optimizer. Causal attention counts
// as computed in full, as in PaLM's and Megatron's first formula, so figures compare with those in
// papers: a kernel that skips the upper triangle does less.
//
// Forward, one token of a model with L layers, H hidden, n heads of size d, g KV groups, F ffn, V
// words, S tokens, m = 3 feed-forward matrices with a gated activation, else 2:
//   L * (2 * (H n d + 2 H g d + n d H + m H F)  linear layers
//        + 4 S n d)                             scores and their product with the values
//   + 2 H V                                     head, tied or not; looking up an embedding is free
double forward_flops_per_token(const ModelConfig& model);

// Forward and backward (twice the forward) of one global batch, on all ranks together.
double step_flops(const ModelConfig& model, int64_t global_batch_size);

// Hardware FLOPs: model FLOPs, counted in the same way, and the forward of the layers, or of
// attention's scores and the feed-forward parts, that backward runs again.
double hardware_step_flops(const Config& config, int64_t global_batch_size);

}  // namespace sevenfold

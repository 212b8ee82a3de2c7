#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// One state of one parameter: shape and dtype of the local gradient, contiguous. The tensor shares
// the optimizer's memory, so what a checkpoint writes into it counts.
struct OptimizerState {
  std::string_view name;  // "exp_avg", "exp_avg_sq", "momentum_buffer"
  at::Tensor tensor;
};

// Updates a rank's weights from its gradients. Weights and gradients are looked up in the
// Parameters on every step, so they may be rebound in between; the states keep their place. Used by
// the rank's thread; a step's work is shared among that thread's LibTorch threads and is the same
// bits for any number.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Reads the (summed, clipped) gradients, writes the weights. Parameters with one dimension (norm
  // gains, biases) do not decay.
  virtual void step(double lr) = 0;
  // In a fixed order; empty when the optimizer keeps none. The parameter must be one of its own.
  virtual std::vector<OptimizerState> states(const Parameter& parameter) const = 0;
  // Steps taken so far; AdamW's bias correction follows from it.
  virtual int64_t num_steps() const = 0;
};

// Allocates the states, zeroed, under MemoryCategory::kOptimizer; the parameters must be bound,
// with fp32 or fp64 weights and gradients of the same type, and outlive the optimizer.
//   kAdamW  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
//           w -= lr ((m/(1-b1^i)) / (sqrt(v/(1-b2^i)) + eps) + wd w),  i = 1, 2, ..: Loshchilov,
//           Hutter 2019
//   kSgd    buffer = mu buffer + (g + wd w);  w -= lr buffer:  torch.optim.SGD, dampening 0. No
//   buffer when
//           mu is 0.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          std::vector<Parameter*> parameters);

// Number of states per element: AdamW 2, SGD 1 with momentum and 0 without. State bytes of a rank
// are this times its elements times the size of an element, exactly.
int64_t num_optimizer_states(const OptimizerConfig& config);

}  // namespace sevenfold

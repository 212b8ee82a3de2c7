#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// One state of the elements of a parameter that this rank owns, in the gradient's dtype, or in bf16
// or fp16 where AdamW's running means are kept so. The tensor and the unit are the optimizer's
// memory, so what a checkpoint writes into them counts.
struct OptimizerState {
  std::string_view name;  // "exp_avg", "exp_avg_sq", "momentum_buffer", "master_weight"
  ElementRange range;     // of the local part of the parameter, in row-major order
  at::Tensor tensor;      // [range.size()]
  float* unit = nullptr;  // fp16 only: the state is the tensor times this power of two
};

// What changes from step to step.
struct StepFactors {
  double lr = 0.0;
  double weight_decay = 0.0;
  double gradient_scale = 1.0;  // clip factor / loss scale: folded in, so gradients stay untouched
};

// Updates the weights that a rank owns from their gradients: all, or its ZeRO shard. Weights and
// gradients are looked up in the Parameters on every step, so they may be rebound in between; the
// states keep their place. Used by the rank's thread; a step's work is shared among that thread's
// LibTorch threads and is the same bits for any number.
//
// bf16 and fp16 weights have an fp32 master copy here: the step is taken on it and the weights are
// its values rounded to nearest, written in the same pass.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Reads the summed gradients, writes the weights. Parameters with one dimension (norm gains,
  // biases) do not decay unless decay_all says so, or decay_qk_norm of the gains of q and k norms.
  virtual void step(const StepFactors& factors) = 0;
  // In a fixed order; empty when the optimizer keeps none. The parameter must be one of its own, of
  // which this rank may own no element.
  virtual std::vector<OptimizerState> states(const Parameter& parameter) const = 0;
  // The owned elements of the weight that steps are taken on, flat: the master copy, or the
  // parameter's own memory where it has none.
  virtual at::Tensor full_weight(const Parameter& parameter) const = 0;
  // Steps taken so far; AdamW's bias correction follows from it.
  virtual int64_t num_steps() const = 0;
  // For whoever puts weights and states back to where they were after `steps`.
  virtual void set_num_steps(int64_t steps) = 0;
};

// Allocates the states, zeroed, under MemoryCategory::kOptimizer; the parameters must be bound and
// outlive the optimizer. Weights and gradients are both fp64 or both fp32, or the weights are bf16
// or fp16 and the gradients fp32; master copies start as the weights are.
//   kAdamW  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
//           w -= lr ((m/(1-b1^i)) / (sqrt(v/(1-b2^i)) + eps) + wd w),  i = 1, 2, ..: Loshchilov,
//           Hutter 2019. m, v or both may be kept in bf16 or fp16 (not in fp64 runs): computed in
//           fp32 and rounded when stored. In bf16 a change of v by less than 1/512 of it is lost,
//           so v falls only where 1 - b2 is larger than that; in fp16 by less than 1/4096. fp16 is
//           stored in a unit per parameter and rank that follows its largest element, as
//           TransformerEngine's FusedAdam does (there any number, here a power of two): v below
//           2^-40 of the largest of its tensor counts as 0, and the bits of those below 2^-28
//           depend on which elements the rank owns.
//   kSgd    buffer = mu buffer + (g + wd w);  w -= lr buffer:  torch.optim.SGD, dampening 0. No
//           buffer when mu is 0.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          std::vector<Parameter*> parameters);

// Number of states per element: AdamW 2, SGD 1 with momentum and 0 without, and a master weight
// where the model computes in bf16 or fp16.
int64_t num_optimizer_states(const OptimizerConfig& config, Precision precision);
// Bytes of them per element: state bytes of a rank are this times the elements that it owns,
// exactly (units are not tensors).
int64_t optimizer_state_bytes(const OptimizerConfig& config, Precision precision);

}  // namespace sevenfold

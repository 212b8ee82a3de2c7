#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"

namespace sevenfold {

// The factor on the loss that keeps fp16 gradients within range: backward passes are seeded with it
// and the optimizer divides by it. 1 in the other precisions, constant where the experiment says
// so, else dynamic: it halves when `hysteresis` steps have overflowed since it last doubled (and
// with each overflow after that), down to the smallest allowed, and doubles after `window` steps in
// a row without overflow. Source: Megatron-LM, DynamicGradScaler.
class LossScale {
 public:
  LossScale(Precision precision, const LossScaleConfig& config);

  double value() const { return value_; }
  bool is_dynamic() const { return is_dynamic_; }
  // What of the past it depends on.
  struct State {
    double value = 1.0;
    int64_t steps_without_overflow = 0;
    int64_t overflows_left = 0;  // until it halves
  };
  State state() const { return {value_, steps_without_overflow_, overflows_left_}; }
  // Where the scale is dynamic; a constant one stays as the experiment says.
  void restore(const State& state);

  // After each step, alike on all ranks: whether its gradients had an infinity or a NaN.
  void update(bool overflowed);

 private:
  LossScaleConfig config_;
  bool is_dynamic_ = false;
  double value_ = 1.0;
  int64_t steps_without_overflow_ = 0;
  int64_t overflows_left_ = 0;
};

}  // namespace sevenfold

#include "sevenfold/train/loss_scale.h"

#include <algorithm>

namespace sevenfold {

LossScale::LossScale(Precision precision, const LossScaleConfig& config)
    : config_(config), overflows_left_(config.hysteresis) {
  if (precision != Precision::kFp16) return;
  is_dynamic_ = config.constant == 0.0;
  value_ = is_dynamic_ ? config.initial : config.constant;
}

void LossScale::restore(const State& state) {
  if (!is_dynamic_) return;
  value_ = state.value;
  steps_without_overflow_ = state.steps_without_overflow;
  overflows_left_ = state.overflows_left;
}

void LossScale::update(bool overflowed) {
  if (!is_dynamic_) return;
  if (overflowed) {
    steps_without_overflow_ = 0;
    if (--overflows_left_ <= 0) value_ = std::max(0.5 * value_, config_.smallest);
    return;
  }
  if (++steps_without_overflow_ < config_.window) return;
  steps_without_overflow_ = 0;
  overflows_left_ = config_.hysteresis;
  value_ *= 2.0;
}

}  // namespace sevenfold

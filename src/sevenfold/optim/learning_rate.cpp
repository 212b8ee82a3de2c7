#include "sevenfold/optim/learning_rate.h"

#include <cmath>
#include <numbers>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// Share of the way from min_lr up to lr that is left, for r = share of the decay that is done.
double decay_coefficient(DecayStyle style, double r) {
  switch (style) {
    case DecayStyle::kConstant:
      return 1.0;
    case DecayStyle::kLinear:
      return 1.0 - r;
    case DecayStyle::kCosine:
      return 0.5 * (std::cos(std::numbers::pi * r) + 1.0);
  }
  raise<InternalError>("optim: unknown decay style {}", static_cast<int>(style));
}

}  // namespace

double learning_rate(const LearningRateConfig& config, int64_t consumed_samples) {
  const auto n = static_cast<double>(consumed_samples);
  const auto warmup = static_cast<double>(config.warmup_samples);
  if (config.warmup_samples > 0 && consumed_samples <= config.warmup_samples) {
    return config.warmup_init + (config.lr - config.warmup_init) * n / warmup;
  }
  if (config.style == DecayStyle::kConstant) return config.lr;
  if (consumed_samples > config.decay_samples) return config.min_lr;
  // warmup < decay is a rule of config/; equal ends would leave nothing to decay over.
  SEVENFOLD_CHECK(config.warmup_samples < config.decay_samples, "warm-up {} samples, decay {}",
                  config.warmup_samples, config.decay_samples);
  const double r = (n - warmup) / (static_cast<double>(config.decay_samples) - warmup);
  return config.min_lr + decay_coefficient(config.style, r) * (config.lr - config.min_lr);
}

}  // namespace sevenfold

#include "sevenfold/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

double half_cosine(double r) {
  return 0.5 * (std::cos(std::numbers::pi * r) + 1.0);
}

double wsd_coefficient(WsdDecayStyle style, double r) {
  switch (style) {
    case WsdDecayStyle::kLinear:
      return 1.0 - r;
    case WsdDecayStyle::kCosine:
      return half_cosine(r);
    case WsdDecayStyle::kExponential:
      return 2.0 * std::pow(0.5, r) - 1.0;
    case WsdDecayStyle::kMinusSqrt:
      return 1.0 - std::sqrt(r);
  }
  raise<InternalError>("optim: unknown WSD decay style {}", static_cast<int>(style));
}

double inverse_square_root(const LearningRateConfig& config, double n) {
  const auto warmup = static_cast<double>(std::max<int64_t>(config.warmup_samples, 1));
  return std::max(config.min_lr, config.lr * std::sqrt(warmup) / std::sqrt(std::max(n, 1.0)));
}

// Share of the way from min_lr up to lr that is left, between the end of the warm-up and that of
// the decay.
double decay_coefficient(const LearningRateConfig& config, double n) {
  const auto warmup = static_cast<double>(config.warmup_samples);
  const auto end = static_cast<double>(config.decay_samples);
  if (config.style == DecayStyle::kWsd) {
    const auto length = static_cast<double>(config.wsd_decay_samples);
    if (n <= end - length) return 1.0;
    return wsd_coefficient(config.wsd_style, (n - (end - length)) / length);
  }
  // warmup < decay is a rule of config/; equal ends would leave nothing to decay over.
  SEVENFOLD_CHECK(config.warmup_samples < config.decay_samples, "warm-up {} samples, decay {}",
                  config.warmup_samples, config.decay_samples);
  const double r = (n - warmup) / (end - warmup);
  return config.style == DecayStyle::kLinear ? 1.0 - r : half_cosine(r);
}

}  // namespace

double learning_rate(const LearningRateConfig& config, int64_t num_samples) {
  const auto n = static_cast<double>(num_samples);
  if (config.warmup_samples > 0 && num_samples <= config.warmup_samples) {
    const auto warmup = static_cast<double>(config.warmup_samples);
    return config.warmup_init + (config.lr - config.warmup_init) * n / warmup;
  }
  if (config.style == DecayStyle::kConstant) return config.lr;
  if (num_samples > config.decay_samples) return config.min_lr;
  if (config.style == DecayStyle::kInverseSquareRoot) return inverse_square_root(config, n);
  return config.min_lr + decay_coefficient(config, n) * (config.lr - config.min_lr);
}

double weight_decay(const OptimizerConfig& config, int64_t num_samples, int64_t run_samples) {
  if (config.weight_decay_style == WeightDecayStyle::kConstant) return config.weight_decay;
  if (num_samples >= run_samples) return config.end_weight_decay;
  const double r = static_cast<double>(num_samples) / static_cast<double>(run_samples);
  const bool is_linear = config.weight_decay_style == WeightDecayStyle::kLinear;
  const double share = is_linear ? r : half_cosine(1.0 - r);
  return config.weight_decay + share * (config.end_weight_decay - config.weight_decay);
}

}  // namespace sevenfold

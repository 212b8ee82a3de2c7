#include <cmath>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

double at_least_zero(const Parameters& parameters, const char* key) {
  const double value = parameters.number(key);
  if (!(value >= 0.0) || std::isinf(value))
    raise_rule("optimizer.range", "config: {}: must be a number of at least 0",
               parameters.where(key));
  return value;
}

double below_one(const Parameters& parameters, const char* key) {
  const double value = at_least_zero(parameters, key);
  if (value >= 1.0)
    raise_rule("optimizer.range", "config: {}: must be at least 0 and below 1",
               parameters.where(key));
  return value;
}

DecayStyle decay_style(Parameters& parameters) {
  const std::string style = parameters.string("lr_decay_style");
  if (style == "constant") return DecayStyle::kConstant;
  if (style == "linear") return DecayStyle::kLinear;
  if (style == "cosine") return DecayStyle::kCosine;
  if (style != "inverse-square-root" && style != "WSD")
    raise_rule("lr.style", "config: {} is not a style; use constant, linear or cosine",
               parameters.where("lr_decay_style"));
  parameters.unsupported(
      "lr_decay_style",
      fmt::format("config: {} is not supported yet; use constant, linear or cosine",
                  parameters.where("lr_decay_style")));
  return DecayStyle::kConstant;
}

int64_t steps(const Parameters& parameters, const char* key, int64_t smallest) {
  const int64_t value = parameters.integer(key);
  if (value < smallest || value > kMaxSize)
    raise_rule("lr.steps", "config: {}: must be at least {} and at most {}", parameters.where(key),
               smallest, kMaxSize);
  return value;
}

int64_t warmup_samples(const Parameters& parameters, int64_t decay_samples,
                       int64_t global_batch_size) {
  const int64_t iterations =
      parameters.is_null("lr_warmup_iters") ? 0 : steps(parameters, "lr_warmup_iters", 0);
  if (parameters.is_null("lr_warmup_fraction")) return iterations * global_batch_size;
  if (iterations != 0)
    raise_rule("lr.warmup_twice",
               "config: {}: lr_warmup_iters={} is set too; use lr_warmup_iters=0 or "
               "lr_warmup_fraction=null",
               parameters.where("lr_warmup_fraction"), iterations);
  const double fraction = below_one(parameters, "lr_warmup_fraction");
  return std::llround(fraction * static_cast<double>(decay_samples));
}

}  // namespace

OptimizerConfig resolve_optimizer(Parameters& parameters) {
  OptimizerConfig optimizer;
  const std::string name = parameters.string("optimizer");
  if (name == "sgd")
    optimizer.kind = OptimizerKind::kSgd;
  else if (name != "adam")
    parameters.unsupported(
        "optimizer", fmt::format("config: {} is not supported yet; use optimizer=adam (AdamW) or "
                                 "optimizer=sgd",
                                 parameters.where("optimizer")));
  optimizer.weight_decay = at_least_zero(parameters, "weight_decay");
  optimizer.adam_beta1 = below_one(parameters, "adam_beta1");
  optimizer.adam_beta2 = below_one(parameters, "adam_beta2");
  optimizer.adam_eps = at_least_zero(parameters, "adam_eps");
  optimizer.sgd_momentum = below_one(parameters, "sgd_momentum");
  optimizer.clip_grad = at_least_zero(parameters, "clip_grad");
  if (!parameters.boolean("calculate_per_token_loss"))
    parameters.notice(fmt::format(
        "{}: the loss is nevertheless the mean over all unmasked tokens of the global batch, "
        "the same in every layout",
        parameters.where("calculate_per_token_loss")));
  return optimizer;
}

LearningRateConfig resolve_learning_rate(Parameters& parameters, int64_t global_batch_size) {
  LearningRateConfig rate;
  rate.lr = at_least_zero(parameters, "lr");
  rate.min_lr = at_least_zero(parameters, "min_lr");
  rate.warmup_init = at_least_zero(parameters, "lr_warmup_init");
  if (rate.min_lr > rate.lr)
    raise_rule("lr.min", "config: {} is above lr={}; use a min_lr of at most that",
               parameters.where("min_lr"), brief(parameters.at("lr")));
  if (rate.warmup_init > rate.lr)
    raise_rule("lr.warmup_init", "config: {} is above lr={}; use a lr_warmup_init of at most that",
               parameters.where("lr_warmup_init"), brief(parameters.at("lr")));
  rate.style = decay_style(parameters);
  const char* length = parameters.is_null("lr_decay_iters") ? "train_iters" : "lr_decay_iters";
  rate.decay_samples = steps(parameters, length, 1) * global_batch_size;
  rate.warmup_samples = warmup_samples(parameters, rate.decay_samples, global_batch_size);
  if (rate.warmup_samples >= rate.decay_samples)
    raise_rule("lr.warmup",
               "config: {}: the warm-up must be shorter than {}={}; use lr_warmup_iters=0 or a "
               "shorter one",
               parameters.where(parameters.is_null("lr_warmup_fraction") ? "lr_warmup_iters"
                                                                         : "lr_warmup_fraction"),
               length, parameters.integer(length));
  return rate;
}

}  // namespace sevenfold::config

#include <cmath>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {

double at_least_zero(const Parameters& parameters, const char* key) {
  const double value = parameters.number(key);
  if (!(value >= 0.0) || std::isinf(value))
    raise_rule("optimizer.range", "config: {}: must be a number of at least 0",
               parameters.where(key));
  return value;
}

namespace {

double below_one(const Parameters& parameters, const char* key) {
  const double value = at_least_zero(parameters, key);
  if (value >= 1.0)
    raise_rule("optimizer.range", "config: {}: must be at least 0 and below 1",
               parameters.where(key));
  return value;
}

// A weight whose gradient never was other than 0 divides by it alone.
double above_zero(const Parameters& parameters, const char* key) {
  const double value = parameters.number(key);
  if (!(value > 0.0) || std::isinf(value))
    raise_rule(
        "optimizer.eps",
        "config: {}: must be a number above 0, or weights without a gradient become 0/0; use "
        "{}=1.0e-08",
        parameters.where(key), key);
  return value;
}

WeightDecayStyle weight_decay_style(const Parameters& parameters) {
  const std::string style = parameters.string("weight_decay_incr_style");
  if (style == "constant") return WeightDecayStyle::kConstant;
  if (style == "linear") return WeightDecayStyle::kLinear;
  if (style == "cosine") return WeightDecayStyle::kCosine;
  raise_rule("optimizer.weight_decay", "config: {} is not a style; use constant, linear or cosine",
             parameters.where("weight_decay_incr_style"));
}

// Only what the user wrote deserves a word: presets set the key too.
void note_unused_decay(Parameters& parameters) {
  if (parameters.is_users("weight_decay"))
    parameters.notice(fmt::format(
        "{}: does nothing with weight_decay_incr_style={}; start_weight_decay and "
        "end_weight_decay act",
        parameters.where("weight_decay"), parameters.string("weight_decay_incr_style")));
}

void resolve_weight_decay(Parameters& parameters, OptimizerConfig& optimizer) {
  optimizer.weight_decay_style = weight_decay_style(parameters);
  const bool is_constant = optimizer.weight_decay_style == WeightDecayStyle::kConstant;
  for (const char* key : {"start_weight_decay", "end_weight_decay"})
    if (parameters.is_null(key) != is_constant)
      raise_rule("optimizer.weight_decay", "config: {}: weight_decay_incr_style={} {}; use {}",
                 parameters.where(key), parameters.string("weight_decay_incr_style"),
                 is_constant ? "takes weight_decay alone" : "needs a start and an end",
                 is_constant ? fmt::format("{}=null", key) : "weight_decay_incr_style=constant");
  if (is_constant) {
    optimizer.weight_decay = at_least_zero(parameters, "weight_decay");
    optimizer.end_weight_decay = optimizer.weight_decay;
    return;
  }
  note_unused_decay(parameters);
  optimizer.weight_decay = at_least_zero(parameters, "start_weight_decay");
  optimizer.end_weight_decay = at_least_zero(parameters, "end_weight_decay");
  if (optimizer.end_weight_decay < optimizer.weight_decay)
    raise_rule("optimizer.weight_decay",
               "config: {} is below start_weight_decay={}, and weight decay only grows; use an end "
               "of at least that",
               parameters.where("end_weight_decay"), brief(parameters.at("start_weight_decay")));
}

MomentType moment_type(Parameters& parameters, const char* key) {
  const std::string type = parameters.optional_string(key).value_or("fp32");
  if (type == "bf16") return MomentType::kBf16;
  if (type == "fp16") return MomentType::kFp16;
  if (type != "fp32")
    parameters.unsupported(key, fmt::format("config: {}: running means in {} are not supported "
                                            "yet; use {}=fp16, bf16 or fp32",
                                            parameters.where(key), type, key));
  return MomentType::kFull;
}

}  // namespace

OptimizerConfig resolve_optimizer(Parameters& parameters, const SevenfoldBlock& block) {
  OptimizerConfig optimizer;
  const std::string name = parameters.string("optimizer");
  if (name == "sgd")
    optimizer.kind = OptimizerKind::kSgd;
  else if (name != "adam")
    parameters.unsupported(
        "optimizer", fmt::format("config: {} is not supported yet; use optimizer=adam (AdamW) or "
                                 "optimizer=sgd",
                                 parameters.where("optimizer")));
  resolve_weight_decay(parameters, optimizer);
  optimizer.decay_qk_norm = parameters.boolean("apply_wd_to_qk_layernorm");
  optimizer.decay_all = block.decay_all.value_or(false);
  optimizer.adam_beta1 = below_one(parameters, "adam_beta1");
  optimizer.adam_beta2 = below_one(parameters, "adam_beta2");
  optimizer.adam_eps = above_zero(parameters, "adam_eps");
  optimizer.exp_avg_type = moment_type(parameters, "exp_avg_dtype");
  optimizer.exp_avg_sq_type = moment_type(parameters, "exp_avg_sq_dtype");
  optimizer.sgd_momentum = below_one(parameters, "sgd_momentum");
  optimizer.clip_grad = at_least_zero(parameters, "clip_grad");
  if (!parameters.boolean("calculate_per_token_loss"))
    parameters.notice(fmt::format(
        "{}: the loss is nevertheless the mean over all unmasked tokens of the global batch, "
        "the same in every layout",
        parameters.where("calculate_per_token_loss")));
  return optimizer;
}

}  // namespace sevenfold::config

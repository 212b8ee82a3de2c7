#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {

void check_checkpoints(const Parameters& parameters) {
  const char* interval_key = "save_interval";
  const auto interval = parameters.optional_integer(interval_key);
  if (interval && *interval < 1)
    raise_rule("checkpoint.interval",
               "config: {}: must be at least 1 step; use save=null to save nothing",
               parameters.where(interval_key));
  const char* retain_key = "save_retain_interval";
  const auto retain = parameters.optional_integer(retain_key);
  if (retain && (*retain < 1 || !interval || *retain % *interval != 0))
    raise_rule("checkpoint.retain",
               "config: {} is not a multiple of save_interval={}; use {} or null",
               parameters.where(retain_key), interval.value_or(0),
               nearest_multiples(*retain, interval.value_or(1)));
  if (parameters.boolean("override_opt_param_scheduler") &&
      parameters.boolean("use_checkpoint_opt_param_scheduler"))
    raise_rule("checkpoint.schedule",
               "config: {}: override_opt_param_scheduler=true is set too, and the schedule comes "
               "from one place; use override_opt_param_scheduler=false",
               parameters.where("use_checkpoint_opt_param_scheduler"));
}

void check_low_precision(const Parameters& parameters) {
  if (!parameters.is_null("fp8") && !parameters.is_null("fp4"))
    raise_rule("precision.low", "config: {}: fp8 is set too; use fp4=null or fp8=null",
               parameters.where("fp4"));
  if (parameters.boolean("fp32_residual_connection") && !parameters.boolean("bf16") &&
      !parameters.boolean("fp16"))
    raise_rule("precision.residual",
               "config: {}: means something beside 16-bit weights only; use bf16=true or "
               "fp32_residual_connection=false",
               parameters.where("fp32_residual_connection"));
}

}  // namespace sevenfold::config

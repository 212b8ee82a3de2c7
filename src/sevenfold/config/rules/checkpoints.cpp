#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

// Steps between checkpoints, where anything says them.
std::optional<int64_t> save_interval(const Parameters& parameters) {
  const char* key = "save_interval";
  const auto interval = parameters.optional_integer(key);
  const bool is_missing = !interval && !parameters.is_null("save");
  if (is_missing || (interval && (*interval < 1 || *interval > kMaxSize)))
    raise_rule("checkpoint.interval",
               "config: {}: must be at least 1 step and at most {}; use save=null to save nothing",
               parameters.where(key), kMaxSize);
  return interval;
}

int64_t retain_interval(const Parameters& parameters, std::optional<int64_t> interval) {
  const char* key = "save_retain_interval";
  const auto retain = parameters.optional_integer(key);
  if (retain && *retain > kMaxSize)
    raise_rule("checkpoint.retain", "config: {}: must be at most {} steps; use null to keep all",
               parameters.where(key), kMaxSize);
  if (retain && (*retain < 1 || (interval && *retain % *interval != 0)))
    raise_rule("checkpoint.retain",
               "config: {} is not a multiple of save_interval={}; use {} or null",
               parameters.where(key), interval.value_or(1),
               nearest_multiples(*retain, interval.value_or(1)));
  return retain.value_or(0);
}

int64_t keep_latest(const SevenfoldBlock& block) {
  const int64_t keep = block.keep_checkpoints.value_or(0);
  if (keep < 0 || keep > kMaxSize)
    raise_rule("checkpoint.keep", "config: {}: must be at least 0 (all stay) and at most {}",
               block.where("keep_checkpoints"), kMaxSize);
  return keep;
}

void resolve_saving(Parameters& parameters, const SevenfoldBlock& block,
                    CheckpointConfig& checkpoint) {
  const auto interval = save_interval(parameters);
  checkpoint.interval = interval.value_or(checkpoint.interval);
  checkpoint.retain_interval = retain_interval(parameters, interval);
  checkpoint.keep_latest = keep_latest(block);
  checkpoint.saves_last = !parameters.boolean("disable_last_saving");
  checkpoint.saves_optimizer = !parameters.boolean("no_save_optim");
  checkpoint.save_directory = parameters.optional_string("save").value_or("");
  if (!checkpoint.save_directory.empty() && !checkpoint.saves_optimizer)
    parameters.notice(fmt::format("{}: no run can be resumed from these checkpoints",
                                  parameters.where("no_save_optim")));
}

std::optional<int64_t> load_step(Parameters& parameters, bool loads) {
  const char* key = "ckpt_step";
  const auto step = parameters.optional_integer(key);
  if (step && (*step < 0 || *step > kMaxSize))
    raise_rule("checkpoint.step",
               "config: {}: a step is at least 0 and at most {}; use null for the newest",
               parameters.where(key), kMaxSize);
  if (step && !loads)
    parameters.notice(
        fmt::format("{}: not read, as there is no load; to go back in a run of your own use "
                    "--resume with a folder step-N",
                    parameters.where(key)));
  return step;
}

// Values that would let the checkpoint say what the file says.
void refuse_arguments_of_checkpoints(Parameters& parameters) {
  const char* model = "use_checkpoint_args";
  if (parameters.boolean(model))
    parameters.unsupported(
        model, fmt::format("config: {}: the model of a checkpoint is not read, its weights go into "
                           "the one that this file describes; use {}=false",
                           parameters.where(model), model));
  const char* rates = "use_checkpoint_opt_param_scheduler";
  if (parameters.boolean(rates))
    parameters.unsupported(
        rates, fmt::format("config: {}: the learning rates of a checkpoint are not read, rates "
                           "follow lr, lr_decay_style and their kin; use {}=false",
                           parameters.where(rates), rates));
}

void resolve_loading(Parameters& parameters, CheckpointConfig& checkpoint) {
  const bool is_pretrained = !parameters.is_null("pretrained_checkpoint");
  if (is_pretrained && !parameters.is_null("load"))
    raise_rule("checkpoint.source",
               "config: {}: {} is set too, and a run begins from one checkpoint; use load=null or "
               "pretrained_checkpoint=null",
               parameters.where("load"), parameters.where("pretrained_checkpoint"));
  const char* key = is_pretrained ? "pretrained_checkpoint" : "load";
  checkpoint.load = parameters.optional_string(key).value_or("");
  const bool loads = !checkpoint.load.empty();
  checkpoint.load_step = load_step(parameters, loads);
  if (!loads) return;
  checkpoint.load_where = parameters.where(key);
  checkpoint.load_is_required = is_pretrained || parameters.boolean("exit_on_missing_checkpoint");
  checkpoint.loads_weights_only = is_pretrained || parameters.boolean("finetune");
  checkpoint.loads_optimizer =
      !checkpoint.loads_weights_only && !parameters.boolean("no_load_optim");
  refuse_arguments_of_checkpoints(parameters);
}

}  // namespace

CheckpointConfig resolve_checkpoints(Parameters& parameters, const SevenfoldBlock& block) {
  const char* rates = "use_checkpoint_opt_param_scheduler";
  if (parameters.boolean("override_opt_param_scheduler") && parameters.boolean(rates))
    raise_rule("checkpoint.schedule",
               "config: {}: override_opt_param_scheduler=true is set too, and the schedule comes "
               "from one place; use override_opt_param_scheduler=false",
               parameters.where(rates));
  CheckpointConfig checkpoint;
  resolve_saving(parameters, block, checkpoint);
  resolve_loading(parameters, checkpoint);
  return checkpoint;
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

#include <algorithm>
#include <limits>

#include "sevenfold/config/batch_schedule.h"
#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr int64_t kMinutesOfAYear = int64_t{365} * 24 * 60;

struct Choice {
  std::string value;
  std::string where;  // what asked for it
};

// The command line beats the sevenfold block beats `fallback`.
Choice choose(const std::optional<std::string>& option, const char* name,
              const std::optional<std::string>& in_block, const SevenfoldBlock& block,
              const char* fallback) {
  if (option) return Choice{*option, fmt::format("--{} {}", name, *option)};
  if (in_block) return Choice{*in_block, block.where(name)};
  return Choice{fallback, fmt::format("{} {}", name, fallback)};
}

[[noreturn]] void raise_choice(const char* name, const Choice& choice, const char* allowed) {
  raise_rule("run.choice", "config: {}: there is no {} `{}`; use {}", choice.where, name,
             choice.value, allowed);
}

Precision precision_from_flags(const Parameters& parameters) {
  if (parameters.boolean("bf16")) return Precision::kBf16;
  return parameters.boolean("fp16") ? Precision::kFp16 : Precision::kFp32;
}

Precision resolve_precision(const Parameters& parameters, const SevenfoldBlock& block,
                            const LoadOptions& options) {
  if (parameters.boolean("bf16") && parameters.boolean("fp16"))
    raise_rule(
        "precision.one",
        "config: {}: fp16 is true too, and a run has one precision; use fp16=false or bf16=false",
        parameters.where("bf16"));
  const Precision from_flags = precision_from_flags(parameters);
  const std::string fallback(precision_name(from_flags));
  const Choice choice =
      choose(options.precision, "precision", block.precision, block, fallback.c_str());
  Precision precision = Precision::kFp32;
  bool is_known = false;
  for (const Precision candidate :
       {Precision::kFp64, Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    if (choice.value != precision_name(candidate)) continue;
    precision = candidate;
    is_known = true;
  }
  if (!is_known) raise_choice("precision", choice, "fp64, fp32, bf16 or fp16");
  return precision;
}

std::string resolve_backend(Parameters& parameters, const SevenfoldBlock& block,
                            const LoadOptions& options) {
  const Choice choice = choose(options.backend, "backend", block.backend, block, "threads");
  if (choice.value == "threads") return choice.value;
  if (choice.value != "gloo" && choice.value != "nccl" && choice.value != "dry")
    raise_choice("backend", choice, "threads, gloo, nccl or dry");
  parameters.unsupported(
      "backend",
      fmt::format("config: {} is not supported yet; use --backend threads", choice.where));
  return choice.value;
}

std::string resolve_device(Parameters& parameters, const SevenfoldBlock& block,
                           const LoadOptions& options) {
  const Choice choice = choose(options.device, "device", block.device, block, "auto");
  if (choice.value == "auto" || choice.value == "cpu") return choice.value;
  if (choice.value != "cuda") raise_choice("device", choice, "auto, cpu or cuda");
  parameters.unsupported(
      "device", fmt::format("config: {} is not supported yet; use --device cpu", choice.where));
  return choice.value;
}

StartKind resolve_start(const SevenfoldBlock& block, const LoadOptions& options) {
  const Choice choice = choose(options.start, "start", block.start, block, "init");
  if (choice.value == "init") return StartKind::kInit;
  if (choice.value == "hot") return StartKind::kHot;
  raise_choice("start", choice, "init or hot");
}

// Null is 0.
int64_t up_to(const Parameters& parameters, const char* key, int64_t largest) {
  const int64_t value = parameters.optional_integer(key).value_or(0);
  if (value < 0 || value > largest)
    raise_rule("run.range", "config: {}: must be at least 0 and at most {}", parameters.where(key),
               largest);
  return value;
}

LossScaleConfig resolve_loss_scale(const Parameters& parameters) {
  const auto number = [&](const char* key, double if_null, double smallest) {
    const double value = parameters.optional_number(key).value_or(if_null);
    if (!(value >= smallest) || value > 0x1p100)
      raise_rule("precision.loss_scale", "config: {}: must be at least {} and at most 2^100",
                 parameters.where(key), smallest);
    return value;
  };
  LossScaleConfig scale;
  scale.constant = number("loss_scale", 0.0, 0.0);
  scale.initial = number("initial_loss_scale", scale.initial, 1.0);
  scale.smallest = number("min_loss_scale", scale.smallest, 0x1p-100);
  if (scale.smallest > scale.initial)
    raise_rule("precision.loss_scale",
               "config: {} is above initial_loss_scale={}; use a min_loss_scale of at most that",
               parameters.where("min_loss_scale"), scale.initial);
  scale.window = std::max<int64_t>(1, up_to(parameters, "loss_scale_window", kMaxSize));
  scale.hysteresis = std::max<int64_t>(1, up_to(parameters, "hysteresis", kMaxSize));
  return scale;
}

// The folder is that of the run, as in Primus; a profile asks for it too.
void resolve_tensorboard(Parameters& parameters, const std::string& directory, RunConfig& run) {
  run.tensorboard_log_interval =
      std::max<int64_t>(1, up_to(parameters, "tensorboard_log_interval", kMaxSize));
  if (parameters.boolean("disable_tensorboard") && !parameters.boolean("profile")) return;
  run.tensorboard_directory = directory + "/tensorboard";
  const auto asked = parameters.optional_string("tensorboard_dir");
  if (asked && *asked != run.tensorboard_directory)
    parameters.notice(fmt::format("{}: files for TensorBoard go to {}",
                                  parameters.where("tensorboard_dir"), run.tensorboard_directory));
}

void resolve_log_keys(const Parameters& parameters, RunConfig& run) {
  run.log_interval = std::max<int64_t>(1, up_to(parameters, "log_interval", kMaxSize));
  run.log_throughput = parameters.boolean("log_throughput");
  run.log_params_norm = parameters.boolean("log_params_norm");
  run.log_num_zeros = parameters.boolean("log_num_zeros_in_grad");
}

void resolve_ends(const Parameters& parameters, RunConfig& run) {
  run.skip_train = parameters.boolean("skip_train");
  run.exit_interval = up_to(parameters, "exit_interval", kMaxSize);
  run.exit_duration_minutes = up_to(parameters, "exit_duration_in_mins", kMinutesOfAYear);
}

}  // namespace

RunConfig resolve_run(Parameters& parameters, const SevenfoldBlock& block,
                      const LoadOptions& options, const std::string& directory) {
  RunConfig run;
  run.directory = directory;
  run.precision = resolve_precision(parameters, block, options);
  run.backend = resolve_backend(parameters, block, options);
  run.device = resolve_device(parameters, block, options);
  run.start = resolve_start(block, options);
  run.seed = static_cast<uint64_t>(up_to(parameters, "seed", std::numeric_limits<int64_t>::max()));
  run.loss_scale = resolve_loss_scale(parameters);
  resolve_ends(parameters, run);
  run.eval_iters = up_to(parameters, "eval_iters", kMaxSize);
  run.eval_interval = up_to(parameters, "eval_interval", kMaxSize);
  run.full_validation = parameters.boolean("full_validation");
  resolve_log_keys(parameters, run);
  resolve_tensorboard(parameters, directory, run);
  run.check_for_nan = parameters.boolean("check_for_nan_in_loss_and_grad");
  if (const auto elements = parameters.optional_integer("ddp_bucket_size")) {
    if (*elements < 1 || *elements > kMaxElements)
      raise_rule("run.range", "config: {}: a bucket holds at least 1 element (and at most {})",
                 parameters.where("ddp_bucket_size"), kMaxElements);
    run.gradient_bucket_elements = *elements;
  }
  run.timeout_s =
      60 * std::max<int64_t>(1, up_to(parameters, "distributed_timeout_minutes", kMinutesOfAYear));
  return run;
}

int64_t resolve_run_length(Parameters& parameters, const BatchConfig& batch, RunConfig& run) {
  const char* key = "train_samples";
  if (parameters.is_null(key)) {
    run.train_iters = up_to(parameters, "train_iters", kMaxSize);
    return run_samples(run, batch);
  }
  if (!parameters.is_null("train_iters"))
    raise_rule(
        "run.length",
        "config: {}: {} is set too, and a run is counted in steps or in samples; use {}=null "
        "or train_iters=null",
        parameters.where(key), parameters.where("train_iters"), key);
  run.train_samples = up_to(parameters, key, kMaxSize * kMaxSize);
  run.train_iters = whole_steps(batch, run.train_samples);
  if (run.train_iters > kMaxSize)
    raise_rule("run.range", "config: {}: {} steps are more than {}; use fewer samples",
               parameters.where(key), run.train_iters, kMaxSize);
  return run.train_samples;
}

void check_run_length(const Parameters& parameters, const RunConfig& run,
                      const BatchConfig& batch) {
  if (run.eval_interval == 0) return;
  // As Megatron counts them: one evaluation more than fit.
  const int64_t evaluations = run.train_iters / run.eval_interval + 1;
  int64_t samples = 0;
  if (!__builtin_mul_overflow(evaluations, run.eval_iters, &samples) &&
      !__builtin_mul_overflow(samples, batch.global_batch_size, &samples))
    return;
  raise_rule(
      "run.samples",
      "config: {}: {} evaluations of that many global batches of {} samples are more samples "
      "than 64 bits count; use a smaller eval_iters",
      parameters.where("eval_iters"), evaluations, batch.global_batch_size);
}

}  // namespace sevenfold::config

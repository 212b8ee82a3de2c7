#include <limits>

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

Precision resolve_precision(Parameters& parameters, const SevenfoldBlock& block,
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
  if (!is_known) raise_choice("precision", choice, "fp64, fp32 or bf16");
  if (precision == Precision::kBf16 || precision == Precision::kFp16) {
    const bool is_flag = !options.precision && !block.precision;
    const std::string where = is_flag ? parameters.where(choice.value) : choice.where;
    parameters.unsupported(is_flag ? choice.value : "precision",
                           fmt::format("config: {}: {} is not supported yet; use --precision fp32",
                                       where, choice.value));
  }
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

void refuse_checkpoints(Parameters& parameters) {
  for (const char* key : {"save", "load", "pretrained_checkpoint"})
    if (!parameters.is_null(key))
      parameters.unsupported(
          key, fmt::format("config: {}: checkpoints are not supported yet; use {}=null",
                           parameters.where(key), key));
}

}  // namespace

RunConfig resolve_run(Parameters& parameters, const SevenfoldBlock& block,
                      const LoadOptions& options) {
  RunConfig run;
  run.precision = resolve_precision(parameters, block, options);
  run.backend = resolve_backend(parameters, block, options);
  run.device = resolve_device(parameters, block, options);
  run.start = resolve_start(block, options);
  run.seed = static_cast<uint64_t>(up_to(parameters, "seed", std::numeric_limits<int64_t>::max()));
  run.train_iters = up_to(parameters, "train_iters", kMaxSize);
  run.eval_iters = up_to(parameters, "eval_iters", kMaxSize);
  run.eval_interval = up_to(parameters, "eval_interval", kMaxSize);
  run.full_validation = parameters.boolean("full_validation");
  run.log_interval = std::max<int64_t>(1, up_to(parameters, "log_interval", kMaxSize));
  run.check_for_nan = parameters.boolean("check_for_nan_in_loss_and_grad");
  if (const auto elements = parameters.optional_integer("ddp_bucket_size")) {
    if (*elements < 1 || *elements > kMaxElements)
      raise_rule("run.range", "config: {}: a bucket holds at least 1 element (and at most {})",
                 parameters.where("ddp_bucket_size"), kMaxElements);
    run.gradient_bucket_elements = *elements;
  }
  run.timeout_s =
      60 * std::max<int64_t>(1, up_to(parameters, "distributed_timeout_minutes", kMinutesOfAYear));
  refuse_checkpoints(parameters);
  return run;
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

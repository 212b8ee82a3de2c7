#include <algorithm>
#include <charconv>
#include <cmath>

#include "sevenfold/config/torchtitan/parts.h"

namespace sevenfold::config {
namespace {

constexpr const char* kWarmup = "lr_scheduler.warmup_steps";
constexpr const char* kRatio = "lr_scheduler.decay_ratio";
constexpr const char* kTotal = "lr_scheduler.total_steps";
constexpr const char* kSteps = "training.steps";
constexpr const char* kCompute = "training.mixed_precision_param";
constexpr const char* kSums = "training.mixed_precision_reduce";

double share(const Parameters& own, const char* key, double value) {
  if (!(value >= 0.0) || value > 1.0)
    raise_rule("optimizer.range", "config: {}: must be at least 0 and at most 1", own.where(key));
  return value;
}

int64_t total_steps(const Parameters& own) {
  const int64_t steps = own.integer(kSteps);
  const int64_t total = own.optional_integer(kTotal).value_or(steps);
  for (const auto& [key, value] : {std::pair{kSteps, steps}, std::pair{kTotal, total}})
    if (value < 1 || value > kMaxSize)
      raise_rule("run.range", "config: {}: must be at least 1 and at most {}", own.where(key),
                 kMaxSize);
  if (total < steps)
    raise_rule("lr.total",
               "config: {} is below training.steps={}: the rate has no value after its schedule; "
               "use null",
               own.where(kTotal), steps);
  return total;
}

int64_t warmup_steps(Parameters& own, int64_t total) {
  const int64_t steps = own.integer(kWarmup);
  if (steps < 0) raise_rule("lr.steps", "config: {}: must be at least 0", own.where(kWarmup));
  if (steps > total)
    own.notice(fmt::format("{}: cut to the {} steps that there are", own.where(kWarmup), total));
  return std::min(steps, total);
}

// Steps in which the rate falls, at most all after the warm-up.
int64_t decay_steps(Parameters& own, int64_t total, int64_t warmup) {
  const auto ratio = own.optional_number(kRatio);
  if (!ratio) return total - warmup;
  // Half to even, as Python rounds.
  const auto steps =
      static_cast<int64_t>(std::nearbyint(share(own, kRatio, *ratio) * static_cast<double>(total)));
  if (steps > total - warmup)
    own.notice(fmt::format("{}: cut to the {} steps after the warm-up", own.where(kRatio),
                           total - warmup));
  return std::min(steps, total - warmup);
}

const char* style_of(const Parameters& own) {
  const std::string style = own.string("lr_scheduler.decay_type");
  return style == "sqrt" ? "minus_sqrt" : style == "cosine" ? "cosine" : "linear";
}

// Every n-th layer, counted from 1.
Value every_nth(int64_t n, int64_t layers) {
  Value ids;
  ids.kind = ValueKind::kList;
  for (int64_t layer = n - 1; layer < layers; layer += n) ids.list.push_back(Value::of(layer));
  return ids;
}

Value strings(std::initializer_list<const char*> texts) {
  Value list;
  list.kind = ValueKind::kList;
  for (const char* text : texts) list.list.push_back(Value::of(std::string(text)));
  return list;
}

void translate_selective(Draft& draft) {
  const char* key = "activation_checkpoint.selective_ac_option";
  const std::string option = draft.own.string(key);
  if (option == "op") {
    draft.set("recompute_granularity", Value::of(std::string("selective")), key);
    draft.set("recompute_modules", strings({"layernorm", "moe_act"}), key);
    return draft.own.notice(
        fmt::format("{}: norms and activations run again; TorchTitan also repeats every second "
                    "matrix product",
                    draft.own.where(key)));
  }
  int64_t n = 0;
  const auto [end, error] = std::from_chars(option.data(), option.data() + option.size(), n);
  if (error != std::errc() || end != option.data() + option.size() || n < 1)
    raise_rule("recompute.option",
               "config: {}: neither a number of layers of at least 1 nor op; use \"2\" or op",
               draft.own.where(key));
  const int64_t layers = draft.to.parameters.integer("num_layers");
  if (n > layers) return;
  draft.set("recompute_granularity", Value::of(std::string("full")), key);
  draft.set("recompute_layer_ids", every_nth(n, layers), key);
}

// Mixed precision is FSDP's; without it TorchTitan has autocast, and that without TP and PP only.
void note_precision(Draft& draft, const Degrees& degrees) {
  const bool is_overruled = draft.to.options.precision || draft.to.block.precision;
  if (is_overruled || degrees.cuts_weights() || degrees.tp * degrees.pp == 1) return;
  draft.own.notice(
      fmt::format("{}: TorchTitan computes in float32 where TP or PP is on and no ranks share "
                  "weights (FSDP, CP); here it is bfloat16",
                  draft.own.where(kCompute)));
}

// Whether gradients are rounded for their sums, as FSDP does.
bool rounds_sums(Draft& draft, const Degrees& degrees, bool is_bf16) {
  if (draft.own.string(kSums) != "bfloat16") return false;
  if (is_bf16 && degrees.cuts_weights()) return true;
  const char* reason = degrees.cuts_weights()
                           ? "gradients of a float32 run are not rounded here; TorchTitan's are"
                           : "it is of ranks that share weights (FSDP, CP)";
  draft.own.notice(fmt::format("{}: has no effect: {}", draft.own.where(kSums), reason));
  return false;
}

}  // namespace

void translate_optimizer(Draft& draft) {
  Parameters& own = draft.own;
  const double decay = own.number("optimizer.weight_decay");
  if (own.string("optimizer.name") == "Adam" && decay != 0.0)
    own.unsupported("optimizer.name",
                    fmt::format("config: {}: it adds weight decay to the gradient, which is not "
                                "supported yet; use optimizer.name=AdamW, or "
                                "optimizer.weight_decay=0",
                                own.where("optimizer.name")));
  // Its optimizer has one group of parameters, norm gains among them.
  if (!draft.to.block.decay_all) draft.to.block.decay_all = true;
  if (!(own.number("training.max_norm") > 0.0))
    raise_rule("optimizer.clip",
               "config: {}: gradients are cut to this norm, so it must be above 0; use "
               "training.max_norm=1.0",
               own.where("training.max_norm"));
}

// TorchTitan's factor at step s (from 0) of T, with W steps of warm-up and D of decay: (s + 1) / W
// while s < W; 1 until T - D; then it falls with r = (s - (T - D)) / D. That is Megatron's WSD with
// a warm-up of W - 1 steps that starts at lr / W.
void translate_learning_rate(Draft& draft) {
  Parameters& own = draft.own;
  const int64_t total = total_steps(own);
  const int64_t warmup = warmup_steps(own, total);
  const int64_t decay = decay_steps(own, total, warmup);
  const double rate = own.number("optimizer.lr");
  const char* floor = "lr_scheduler.min_lr_factor";
  draft.set("min_lr", Value::of(rate * share(own, floor, own.number(floor))), floor);
  draft.set("lr_decay_iters", Value::of(total), own.is_null(kTotal) ? kSteps : kTotal);
  draft.set("lr_warmup_iters", Value::of(std::max<int64_t>(0, warmup - 1)), kWarmup);
  if (warmup > 1)
    draft.set("lr_warmup_init", Value::of(rate / static_cast<double>(warmup)), kWarmup);
  const bool falls = decay > 0;
  const char* type = "lr_scheduler.decay_type";
  draft.set("lr_decay_style", Value::of(std::string(falls ? "WSD" : "constant")), type);
  if (!falls) return;
  draft.set("lr_wsd_decay_iters", Value::of(decay), kRatio);
  draft.set("lr_wsd_decay_style", Value::of(std::string(style_of(own))), type);
}

void translate_precision(Draft& draft, const Degrees& degrees) {
  const bool is_bf16 = draft.own.string(kCompute) == "bfloat16";
  if (is_bf16) note_precision(draft, degrees);
  draft.set("bf16", Value::of(is_bf16), kCompute);
  draft.set("grad_reduce_in_bf16", Value::of(rounds_sums(draft, degrees, is_bf16)), kSums);
}

void translate_recomputation(Draft& draft) {
  const char* key = "activation_checkpoint.mode";
  const std::string mode = draft.own.string(key);
  if (mode == "selective") return translate_selective(draft);
  if (mode == "memory_budget")
    draft.own.notice(
        fmt::format("{}: nothing runs again: the choice is a compiler's", draft.own.where(key)));
  if (mode != "full") return;
  draft.set("recompute_granularity", Value::of(std::string("full")), key);
  draft.set("recompute_method", Value::of(std::string("uniform")), key);
  draft.set("recompute_num_layers", Value::of(int64_t{1}), key);
}

}  // namespace sevenfold::config

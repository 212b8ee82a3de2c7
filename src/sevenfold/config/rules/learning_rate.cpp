#include <cmath>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

DecayStyle decay_style(const Parameters& parameters) {
  const std::string style = parameters.string("lr_decay_style");
  if (style == "constant") return DecayStyle::kConstant;
  if (style == "linear") return DecayStyle::kLinear;
  if (style == "cosine") return DecayStyle::kCosine;
  if (style == "inverse-square-root") return DecayStyle::kInverseSquareRoot;
  if (style == "WSD") return DecayStyle::kWsd;
  raise_rule("lr.style",
             "config: {} is not a style; use constant, linear, cosine, inverse-square-root or WSD",
             parameters.where("lr_decay_style"));
}

WsdDecayStyle wsd_style(const Parameters& parameters) {
  const std::string style = parameters.string("lr_wsd_decay_style");
  if (style == "linear") return WsdDecayStyle::kLinear;
  if (style == "cosine") return WsdDecayStyle::kCosine;
  if (style == "exponential") return WsdDecayStyle::kExponential;
  if (style == "minus_sqrt") return WsdDecayStyle::kMinusSqrt;
  raise_rule("lr.style", "config: {} is not a style; use linear, cosine, exponential or minus_sqrt",
             parameters.where("lr_wsd_decay_style"));
}

// Reads the lengths of the schedule in samples, from keys in steps or, if the run is counted in
// samples, from those in samples.
class Lengths {
 public:
  Lengths(const Parameters& parameters, int64_t global_batch_size)
      : parameters_(parameters), in_samples_(!parameters.is_null("train_samples")) {
    unit_ = in_samples_ ? 1 : global_batch_size;
  }

  // "lr_decay" -> lr_decay_iters or lr_decay_samples.
  std::string key(const std::string& stem) const {
    return stem + (in_samples_ ? "_samples" : "_iters");
  }
  bool is_null(const std::string& stem) const { return parameters_.is_null(key(stem)); }

  int64_t samples(const std::string& stem, int64_t smallest) const {
    const int64_t value = parameters_.integer(key(stem));
    const int64_t largest = in_samples_ ? kMaxSize * kMaxSize : kMaxSize;
    if (value < smallest || value > largest)
      raise_rule("lr.steps", "config: {}: must be at least {} and at most {}",
                 parameters_.where(key(stem)), smallest, largest);
    return value * unit_;
  }

  // Keys of the other counting must be left alone.
  void refuse_others() const {
    for (const std::string stem : {"lr_decay", "lr_warmup", "lr_wsd_decay"}) {
      const std::string other = stem + (in_samples_ ? "_iters" : "_samples");
      if (parameters_.optional_integer(other).value_or(0) == 0) continue;
      raise_rule("lr.counting", "config: {}: the run is counted in {}; use {}={} and {} instead",
                 parameters_.where(other),
                 in_samples_ ? parameters_.where("train_samples") : "steps (train_iters)", other,
                 stem == "lr_warmup" ? "0" : "null", key(stem));
    }
  }

 private:
  const Parameters& parameters_;
  bool in_samples_;
  int64_t unit_ = 1;
};

int64_t warmup_samples(const Parameters& parameters, const Lengths& lengths,
                       int64_t decay_samples) {
  const int64_t samples = lengths.is_null("lr_warmup") ? 0 : lengths.samples("lr_warmup", 0);
  if (parameters.is_null("lr_warmup_fraction")) return samples;
  if (samples != 0)
    raise_rule("lr.warmup_twice",
               "config: {}: {}={} is set too; use {}=0 or lr_warmup_fraction=null",
               parameters.where("lr_warmup_fraction"), lengths.key("lr_warmup"),
               parameters.integer(lengths.key("lr_warmup")), lengths.key("lr_warmup"));
  const double fraction = at_least_zero(parameters, "lr_warmup_fraction");
  if (fraction >= 1.0)
    raise_rule("optimizer.range", "config: {}: must be at least 0 and below 1",
               parameters.where("lr_warmup_fraction"));
  return std::llround(fraction * static_cast<double>(decay_samples));
}

int64_t wsd_samples(const Parameters& parameters, const Lengths& lengths, int64_t decay_samples) {
  const std::string key = lengths.key("lr_wsd_decay");
  if (lengths.is_null("lr_wsd_decay"))
    raise_rule("lr.wsd", "config: {}: the length of the last decay is missing; set {}",
               parameters.where("lr_decay_style"), key);
  const int64_t samples = lengths.samples("lr_wsd_decay", 1);
  if (samples > decay_samples)
    raise_rule("lr.wsd",
               "config: {}: the last decay must fit into the schedule's {} samples; use a smaller "
               "{}",
               parameters.where(key), decay_samples, key);
  return samples;
}

void note_unused_wsd(Parameters& parameters) {
  for (const char* key : {"lr_wsd_decay_style", "lr_wsd_decay_iters", "lr_wsd_decay_samples"})
    if (parameters.is_users(key) && !parameters.is_null(key))
      parameters.notice(fmt::format("{}: does nothing with lr_decay_style={}; it belongs to WSD",
                                    parameters.where(key), parameters.string("lr_decay_style")));
}

}  // namespace

LearningRateConfig resolve_learning_rate(Parameters& parameters, int64_t global_batch_size,
                                         int64_t run_samples) {
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
  const Lengths lengths(parameters, global_batch_size);
  lengths.refuse_others();
  const std::string length = lengths.key(lengths.is_null("lr_decay") ? "train" : "lr_decay");
  rate.decay_samples = lengths.is_null("lr_decay") ? run_samples : lengths.samples("lr_decay", 1);
  if (rate.decay_samples < 1)
    raise_rule("lr.steps", "config: {}: must be at least 1", parameters.where(length));
  rate.warmup_samples = warmup_samples(parameters, lengths, rate.decay_samples);
  if (rate.warmup_samples >= rate.decay_samples)
    raise_rule("lr.warmup",
               "config: {}: the warm-up must be shorter than {}={}; use {}=0 or a shorter one",
               parameters.where(parameters.is_null("lr_warmup_fraction") ? lengths.key("lr_warmup")
                                                                         : "lr_warmup_fraction"),
               length, parameters.integer(length), lengths.key("lr_warmup"));
  if (rate.style == DecayStyle::kWsd) {
    rate.wsd_style = wsd_style(parameters);
    rate.wsd_decay_samples = wsd_samples(parameters, lengths, rate.decay_samples);
  } else {
    note_unused_wsd(parameters);
  }
  return rate;
}

}  // namespace sevenfold::config

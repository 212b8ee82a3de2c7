#include <algorithm>
#include <charconv>
#include <sstream>

#include "sevenfold/config/rules/rules.h"

// A global batch that changes with the consumed samples. Source: megatron-core's num_microbatches
// calculators (the growing one as older releases have it).

namespace sevenfold::config {
namespace {

constexpr const char* kGrowing = "rampup_batch_size";
constexpr const char* kSteps = "step_batch_size_schedule";
constexpr int64_t kMaxStages = 10'000;

std::vector<std::string> words(const Value& value) {
  std::vector<std::string> result;
  if (value.is_list()) {
    for (const Value& item : value.list) result.push_back(brief(item));
    return result;
  }
  std::istringstream text(brief(value));
  for (std::string word; text >> word;) result.push_back(word);
  return result;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void check_stage(const Parameters& parameters, const char* key, int64_t size, int64_t unit) {
  if (size < 1 || size > kMaxSize || size % unit != 0)
    raise_rule("batch.schedule",
               "config: {}: its global batch {} is not micro_batch_size x data-parallel size = {} "
               "times a whole number of micro batches; use {}",
               parameters.where(key), size, unit,
               nearest_multiples(std::clamp<int64_t>(size, 1, kMaxSize), unit));
}

struct Growth {
  int64_t start = 0;
  int64_t increment = 0;
  int64_t samples = 0;
};

Growth read_growth(const Parameters& parameters, int64_t global_batch_size, int64_t unit) {
  std::vector<int64_t> numbers;
  for (const std::string& word : words(parameters.at(kGrowing)))
    numbers.push_back(whole_number(word).value_or(-1));
  if (numbers.size() != 3 || *std::min_element(numbers.begin(), numbers.end()) < 1 ||
      numbers[2] > kMaxSize * kMaxSize / 4)
    raise_rule("batch.rampup",
               "config: {}: three numbers of at least 1 are needed: first global batch, increment, "
               "samples of growth; write for example [{}, {}, {}]",
               parameters.where(kGrowing), unit, unit, 100 * global_batch_size);
  const Growth growth{numbers[0], numbers[1], numbers[2]};
  check_stage(parameters, kGrowing, growth.start, unit);
  if (growth.start > global_batch_size)
    raise_rule("batch.rampup",
               "config: {}: its first global batch {} is above global_batch_size={}, and the batch "
               "only grows; start with at most that, or use a larger global_batch_size",
               parameters.where(kGrowing), growth.start, global_batch_size);
  if (growth.increment > kMaxSize || (global_batch_size - growth.start) % growth.increment != 0)
    raise_rule("batch.rampup",
               "config: {}: from {} in steps of {} the batch never is global_batch_size={}; use an "
               "increment that divides their difference {}",
               parameters.where(kGrowing), growth.start, growth.increment, global_batch_size,
               global_batch_size - growth.start);
  if (growth.start < global_batch_size)
    check_stage(parameters, kGrowing, growth.start + growth.increment, unit);
  return growth;
}

// The older calculator steps after every samples/num_increments consumed samples, in floating
// point; this finds the first whole number of samples at which its division gives `step`.
int64_t first_sample_of(int64_t step, double samples_per_step) {
  auto sample = static_cast<int64_t>(static_cast<double>(step) * samples_per_step);
  const auto step_at = [&](int64_t n) {
    return static_cast<int64_t>(static_cast<double>(n) / samples_per_step);
  };
  while (sample > 0 && step_at(sample - 1) >= step) --sample;
  while (step_at(sample) < step) ++sample;
  return sample;
}

std::vector<BatchStage> growing_stages(const Growth& growth, int64_t global_batch_size) {
  std::vector<BatchStage> stages{{0, growth.start}};
  const int64_t num_steps = (global_batch_size - growth.start) / growth.increment;
  const double samples_per_step =
      static_cast<double>(growth.samples) / static_cast<double>(std::max<int64_t>(1, num_steps));
  for (int64_t step = 1; step <= num_steps; ++step) {
    const BatchStage stage{first_sample_of(step, samples_per_step),
                           growth.start + step * growth.increment};
    if (stages.back().from_samples == stage.from_samples)
      stages.back() = stage;
    else
      stages.push_back(stage);
  }
  return stages;
}

// "250B" in tokens.
std::optional<int64_t> threshold(std::string text) {
  constexpr std::string_view kSuffixes = "KMBT";
  int64_t factor = 1;
  const size_t suffix = text.empty() ? std::string::npos : kSuffixes.find(text.back());
  if (suffix != std::string::npos) {
    for (size_t i = 0; i <= suffix; ++i) factor *= 1000;
    text.pop_back();
  }
  const auto number = whole_number(text);
  int64_t product = 0;
  if (!number || *number < 0 || __builtin_mul_overflow(*number, factor, &product))
    return std::nullopt;
  return product;
}

std::vector<BatchStage> written_stages(const Parameters& parameters, int64_t unit) {
  const int64_t seq_length = std::max<int64_t>(1, parameters.integer("seq_length"));
  std::vector<BatchStage> stages;
  for (const std::string& word : words(parameters.at(kSteps))) {
    const size_t colon = word.find(':');
    const auto tokens = threshold(word.substr(0, colon));
    const auto size =
        colon == std::string::npos ? std::nullopt : whole_number(word.substr(colon + 1));
    if (!tokens || !size)
      raise_rule("batch.steps",
                 "config: {}: `{}` is not TOKENS:GLOBAL_BATCH (suffixes K, M, B, T); write for "
                 "example \"0:768 250B:1536\"",
                 parameters.where(kSteps), word);
    check_stage(parameters, kSteps, *size, unit);
    // A first threshold of less than a sample is not 0 either.
    const bool starts_late = stages.empty() && *tokens != 0;
    stages.push_back({starts_late ? *tokens : *tokens / seq_length, *size});
  }
  const auto is_not_above = [](const BatchStage& a, const BatchStage& b) {
    return b.from_samples <= a.from_samples;
  };
  if (stages.empty() || stages.front().from_samples != 0 ||
      std::adjacent_find(stages.begin(), stages.end(), is_not_above) != stages.end())
    raise_rule("batch.steps",
               "config: {}: the thresholds must start at 0 and rise by a sample of seq_length={} "
               "tokens or more; write for example \"0:768 250B:1536\"",
               parameters.where(kSteps), seq_length);
  return stages;
}

}  // namespace

std::vector<BatchStage> resolve_batch_schedule(Parameters& parameters, int64_t global_batch_size,
                                               int64_t unit) {
  const bool grows = !parameters.is_null(kGrowing);
  if (!parameters.is_null(kSteps)) {
    if (grows)
      raise_rule("batch.one_schedule",
                 "config: {}: {} is set too, and each of them says how the global batch changes; "
                 "keep one",
                 parameters.where(kSteps), kGrowing);
    auto stages = written_stages(parameters, unit);
    if (stages.back().global_batch_size != global_batch_size)
      parameters.notice(fmt::format("{}: global_batch_size={} gives way to its last batch {}",
                                    parameters.where(kSteps), global_batch_size,
                                    stages.back().global_batch_size));
    return stages;
  }
  if (!grows) return {};
  const Growth growth = read_growth(parameters, global_batch_size, unit);
  if ((global_batch_size - growth.start) / growth.increment > kMaxStages)
    raise_rule("batch.rampup", "config: {}: more than {} increments; use a larger one",
               parameters.where(kGrowing), kMaxStages);
  parameters.notice(fmt::format(
      "{}: the batch grows, as in older Megatron; Megatron 0.20 ignores this key (it has "
      "step_batch_size_schedule)",
      parameters.where(kGrowing)));
  auto stages = growing_stages(growth, global_batch_size);
  return stages.size() == 1 ? std::vector<BatchStage>{} : stages;
}

}  // namespace sevenfold::config

#include "sevenfold/dataset/order/split.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"training", "validation", "test"};

double parse_weight(std::string_view text, const std::string& split) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    raise<ConfigError>(
        "dataset: split=\"{}\": \"{}\" is no number; write three weights like 969,30,1", split,
        text);
  return value;
}

constexpr std::string_view kNumber = "0123456789.";

bool is_number_at(std::string_view split, size_t at) {
  return at < split.size() && kNumber.find(split[at]) != std::string_view::npos;
}

// Megatron takes "-1" for 1, and "1e3" for 1 and 3: nobody means that. A dash behind a number is a
// separator.
bool has_sign_or_exponent(std::string_view split, size_t number) {
  if (number == 0) return false;
  const char before = split[number - 1];
  if (before == 'e' || before == 'E') return number >= 2 && is_number_at(split, number - 2);
  if (before != '-' && before != '+') return false;
  return !is_number_at(split, split.substr(0, number - 1).find_last_not_of(' '));
}

// All maximal runs of digits and dots, padded with 0 to three.
std::array<double, 3> parse_weights(const std::string& split) {
  std::array<double, 3> weights{};
  size_t count = 0;
  for (size_t at = split.find_first_of(kNumber); at != std::string::npos;) {
    const size_t end = std::min(split.find_first_not_of(kNumber, at), split.size());
    if (count == weights.size())
      raise<ConfigError>(
          "dataset: split=\"{}\" has more than three numbers; write the weights of "
          "training, validation and test, like 969,30,1",
          split);
    if (has_sign_or_exponent(split, at))
      raise<ConfigError>(
          "dataset: split=\"{}\": a weight is a plain decimal number of at least 0; write three "
          "weights like 969,30,1",
          split);
    weights[count++] = parse_weight(std::string_view(split).substr(at, end - at), split);
    at = split.find_first_of(kNumber, end);
  }
  return weights;
}

}  // namespace

std::array<std::optional<SequenceRange>, 3> split_sequences(const std::string& split,
                                                            int64_t num_sequences) {
  std::array<double, 3> weights = parse_weights(split);
  const double sum = weights[0] + weights[1] + weights[2];
  if (!(sum > 0) || !std::isfinite(sum))
    raise<ConfigError>("dataset: split=\"{}\" sums to {}; write three weights like 969,30,1", split,
                       sum);

  std::array<std::optional<SequenceRange>, 3> ranges;
  // Ends are added left to right in double, then scaled and rounded with ties to even: Megatron's
  // bits.
  double begin = 0;
  const auto scaled = [&](double end) {
    return static_cast<int64_t>(std::nearbyint(end * static_cast<double>(num_sequences)));
  };
  for (size_t i = 0; i < ranges.size(); ++i) {
    const double end = begin + weights[i] / sum;
    if (end > begin) ranges[i] = SequenceRange{scaled(begin), scaled(end)};
    begin = end;
  }
  return ranges;
}

SequenceRange require_split(const std::string& split, const SequenceSource& data, Split which) {
  const auto part = static_cast<size_t>(which);
  const auto range = split_sequences(split, data.num_sequences())[part];
  if (range && range->size() > 0) return *range;
  const std::string reason =
      range ? fmt::format("so its {} part is empty", kNames[part])
            : fmt::format("but split=\"{}\" has no {} part", split, kNames[part]);
  raise<ConfigError>(
      "dataset: {}: {} documents are cut by split=\"{}\", {}; give that part a larger "
      "weight or a file of its own",
      data.name(), data.num_sequences(), split, reason);
}

}  // namespace sevenfold

#include "sevenfold/config/split_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace sevenfold {
namespace {

constexpr std::string_view kNumber = "0123456789.";

std::optional<double> read_weight(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

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

// Of the runs of digits and dots.
SplitWeights read_numbers(std::string_view split) {
  SplitWeights result;
  size_t count = 0;
  for (size_t at = split.find_first_of(kNumber); at != std::string_view::npos;) {
    const size_t end = std::min(split.find_first_not_of(kNumber, at), split.size());
    const std::string_view text = split.substr(at, end - at);
    if (count == result.weights.size())
      return {{}, "more than three numbers; write the weights of training, validation and test"};
    if (has_sign_or_exponent(split, at))
      return {{}, "a weight is a plain decimal number of at least 0; write three weights"};
    const auto weight = read_weight(text);
    if (!weight) return {{}, fmt::format("\"{}\" is no number; write three weights", text)};
    result.weights[count++] = *weight;
    at = split.find_first_of(kNumber, end);
  }
  return result;
}

}  // namespace

SplitWeights read_split(const std::string& split) {
  SplitWeights result = read_numbers(split);
  const double sum = result.weights[0] + result.weights[1] + result.weights[2];
  if (result.fault.empty() && (!(sum > 0) || !std::isfinite(sum)))
    result.fault = fmt::format("the weights sum to {}; write three weights", sum);
  if (!result.fault.empty()) result.fault += " like 969,30,1";
  return result;
}

}  // namespace sevenfold

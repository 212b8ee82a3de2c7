#include "sevenfold/dataset/order/split.h"

#include <cmath>
#include <string_view>

#include "sevenfold/config/split_weights.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"training", "validation", "test"};

// How messages name the split: where it is written, or what it is.
std::string split_place(const std::string& split, const std::string& where) {
  return where.empty() ? fmt::format("split=\"{}\"", split) : where;
}

}  // namespace

std::array<std::optional<SequenceRange>, 3> split_sequences(const std::string& split,
                                                            int64_t num_sequences) {
  const auto [weights, fault] = read_split(split);
  if (!fault.empty()) raise<ConfigError>("dataset: split=\"{}\": {}", split, fault);
  const double sum = weights[0] + weights[1] + weights[2];

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

SequenceRange require_split(const std::string& split, const SequenceSource& data, Split which,
                            const std::string& where) {
  const auto part = static_cast<size_t>(which);
  const auto range = split_sequences(split, data.num_sequences())[part];
  if (range && range->size() > 0) return *range;
  raise<ConfigError>(
      "dataset: {}: of the {} documents of {} the {} part gets none ({}); give that part a larger "
      "weight or a file of its own",
      split_place(split, where), data.num_sequences(), data.name(), kNames[part],
      range ? "its share is less than half of one" : "it has no weight");
}

}  // namespace sevenfold

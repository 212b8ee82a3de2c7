#include "sevenfold/dataset/order/blend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

double sum_block(std::span<const double> values) {
  std::array<double, 8> sums{};
  std::copy_n(values.begin(), sums.size(), sums.begin());
  const size_t whole = values.size() / 8 * 8;
  for (size_t i = 8; i < whole; ++i) sums[i % 8] += values[i];
  double sum =
      ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (size_t i = whole; i < values.size(); ++i) sum += values[i];
  return sum;
}

// The set among those with `is_open` whose weight times `place` is furthest above its count.
template <typename IsOpen>
size_t furthest_behind(std::span<const double> weights, const std::vector<int64_t>& counts,
                       double place, IsOpen&& is_open) {
  size_t best = weights.size();
  double most = 0;
  for (size_t d = 0; d < weights.size(); ++d) {
    if (!is_open(d)) continue;
    const double behind = weights[d] * place - static_cast<double>(counts[d]);
    if (best < weights.size() && behind <= most) continue;
    best = d;
    most = behind;
  }
  return best;
}

template <typename IsOpen>
BlendIndex blend_greedily(std::span<const double> weights, int64_t size, IsOpen&& is_open) {
  SEVENFOLD_CHECK(!weights.empty() && size >= 0, "{} sets, {} samples", weights.size(), size);
  BlendIndex index;
  index.dataset.reserve(static_cast<size_t>(size));
  index.sample.reserve(static_cast<size_t>(size));
  std::vector<int64_t> counts(weights.size());
  for (int64_t k = 0; k < size; ++k) {
    const auto place = static_cast<double>(std::max<int64_t>(k, 1));
    const size_t set =
        furthest_behind(weights, counts, place, [&](size_t d) { return is_open(d, counts[d]); });
    SEVENFOLD_CHECK(set < weights.size(), "no set for sample {} of {}", k, size);
    index.dataset.push_back(static_cast<uint32_t>(set));
    index.sample.push_back(counts[set]++);
  }
  return index;
}

}  // namespace

double numpy_sum(std::span<const double> values) {
  if (values.size() < 8) return std::accumulate(values.begin(), values.end(), 0.0);
  if (values.size() <= 128) return sum_block(values);
  const size_t half = values.size() / 2 / 8 * 8;
  return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
}

std::vector<double> normalize(std::span<const double> weights) {
  const double sum = numpy_sum(weights);
  std::vector<double> normalized(weights.begin(), weights.end());
  for (double& weight : normalized) weight /= sum;
  return normalized;
}

std::vector<int64_t> blend_targets(std::span<const double> weights, int64_t num_samples) {
  std::vector<int64_t> targets;
  for (const double weight : weights)
    targets.push_back(static_cast<int64_t>(std::ceil(static_cast<double>(num_samples) * weight)));
  return targets;
}

int64_t with_surplus(int64_t target, double surplus) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(target) * (1.0 + surplus)));
}

BlendIndex blend(std::span<const double> weights, int64_t size) {
  return blend_greedily(weights, size, [](size_t, int64_t) { return true; });
}

std::vector<int64_t> samples_taken(const BlendIndex& index, size_t num_sets) {
  std::vector<int64_t> taken(num_sets);
  for (const uint32_t set : index.dataset) ++taken[set];
  return taken;
}

BlendIndex blend_exhaustive(std::span<const int64_t> sizes) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<double> weights;
  for (const int64_t size : sizes)
    weights.push_back(static_cast<double>(size) / static_cast<double>(total));
  return blend_greedily(weights, total, [&](size_t d, int64_t count) { return count < sizes[d]; });
}

}  // namespace sevenfold

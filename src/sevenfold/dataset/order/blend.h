#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sevenfold {

// Megatron's arithmetic of blended data sets, bit for bit; rules: docs/data.md. Doubles throughout;
// products and sums are rounded separately (-ffp-contract=off), which decides the order.

// Sum as numpy takes it: pairwise, in blocks of eight running sums.
double numpy_sum(std::span<const double> values);
// Every weight divided by the sum.
std::vector<double> normalize(std::span<const double> weights);

// Samples that each set gives to a blend of `num_samples`: ceil(num_samples * w), w normalized.
std::vector<int64_t> blend_targets(std::span<const double> weights, int64_t num_samples);
// What is asked of a set for its target: ceil(target * (1 + surplus)).
int64_t with_surplus(int64_t target, double surplus);

// Sample k of a blend is sample sample[k] of set dataset[k].
struct BlendIndex {
  std::vector<uint32_t> dataset;
  std::vector<int64_t> sample;

  int64_t size() const { return static_cast<int64_t>(dataset.size()); }
};

// The greedy rule: always the set that is furthest behind its weight, the first of equal ones.
// Takes the weights as they are. Time: size * number of sets.
BlendIndex blend(std::span<const double> weights, int64_t size);
// Samples of each set that the blend takes.
std::vector<int64_t> samples_taken(const BlendIndex& index, size_t num_sets);
// All samples of all sets, each once, in proportion to the sizes.
BlendIndex blend_exhaustive(std::span<const int64_t> sizes);

}  // namespace sevenfold

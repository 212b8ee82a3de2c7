#include "sevenfold/dataset/order/blend.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "dataset/golden.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> datasets_of(const BlendIndex& index) {
  return {index.dataset.begin(), index.dataset.end()};
}

TEST(Blend, EqualsMegatronsWeightsAndOrder) {
  for (const auto& entry : testing::megatron_golden()["blend"]) {
    SCOPED_TRACE(entry["weights"].dump() + " size " + entry["size"].dump());
    const auto once = normalize(entry["weights"].get<std::vector<double>>());
    EXPECT_EQ(once, entry["normalized"].get<std::vector<double>>());
    const auto twice = normalize(once);
    EXPECT_EQ(twice, entry["normalized_twice"].get<std::vector<double>>());
    const BlendIndex index = blend(once, entry["size"]);
    testing::expect_array(datasets_of(index), entry["dataset_index"]);
    testing::expect_array(index.sample, entry["dataset_sample_index"]);
  }
  EXPECT_EQ(testing::megatron_golden()["blend"].size(), 8U);
}

TEST(Blend, UsesUpAllSetsAsMegatronDoes) {
  for (const auto& entry : testing::megatron_golden()["blend_exhaustive"]) {
    SCOPED_TRACE(entry["sizes"].dump());
    const BlendIndex index = blend_exhaustive(entry["sizes"].get<std::vector<int64_t>>());
    testing::expect_array(datasets_of(index), entry["dataset_index"]);
    testing::expect_array(index.sample, entry["dataset_sample_index"]);
  }
  EXPECT_EQ(testing::megatron_golden()["blend_exhaustive"].size(), 2U);
}

TEST(Blend, AsksAsManySamplesOfEachSetAsMegatron) {
  for (const auto& entry : testing::megatron_golden()["blend_sizes"]) {
    SCOPED_TRACE(entry.dump());
    const auto weights = normalize(entry["weights"].get<std::vector<double>>());
    const double surplus = entry["surplus"];
    for (size_t d = 0; d < weights.size(); ++d)
      for (size_t part = 0; part < 3; ++part) {
        const int64_t target = blend_targets(weights, entry["sizes"][part])[d];
        EXPECT_EQ(target, entry["target"][d][part].get<int64_t>());
        EXPECT_EQ(with_surplus(target, surplus), entry["build"][d][part].get<int64_t>());
      }
  }
  EXPECT_EQ(testing::megatron_golden()["blend_sizes"].size(), 4U);
}

TEST(Blend, TakesTheSetThatIsFurthestBehind) {
  EXPECT_THAT(blend(std::vector{.3, .7}, 10).dataset, ElementsAre(1, 0, 1, 1, 0, 1, 1, 0, 1, 1));
  EXPECT_THAT(blend(std::vector{.5, .25, .25}, 8).dataset, ElementsAre(0, 1, 2, 0, 0, 1, 2, 0));
  EXPECT_THAT(blend(std::vector{.001, .999}, 8).dataset, ElementsAre(1, 0, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(blend(std::vector{1.0}, 3).sample, ElementsAre(0, 1, 2));
}

TEST(Blend, HoldsMoreThan255Sets) {
  const std::vector<double> weights(300, 1.0 / 300);
  const BlendIndex index = blend(weights, 600);
  std::vector<int64_t> counts(300);
  for (const uint32_t set : index.dataset) ++counts[set];
  EXPECT_THAT(counts, ::testing::Each(2));
}

// A weight vector of 1..40 sets, some of them very small.
std::vector<double> random_weights(std::mt19937& engine) {
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::vector<double> weights(1 + engine() % 40);
  for (double& weight : weights) {
    const double value = uniform(engine);
    weight = engine() % 3 == 0 ? std::pow(value, 12.0) + 1e-12 : value + 1e-6;
  }
  return weights;
}

TEST(Blend, OfAsManySamplesAsWereAskedNeverTakesMoreThanWasBuilt) {
  std::mt19937 engine(57);
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::vector<double> weights = normalize(random_weights(engine));
    const auto num_samples = 1 + static_cast<int64_t>(engine() % 300);
    const auto targets = blend_targets(weights, num_samples);
    const auto used = samples_taken(blend(normalize(weights), num_samples), weights.size());
    for (size_t d = 0; d < used.size(); ++d)
      ASSERT_LE(used[d], with_surplus(targets[d], 0.005))
          << "trial " << trial << ", set " << d << " of " << used.size();
  }
}

TEST(Blend, CountsWhatItTakes) {
  EXPECT_THAT(samples_taken(blend(std::vector{.3, .7}, 10), 3), ElementsAre(3, 7, 0));
}

TEST(Blend, SumsPairwiseAsNumpy) {
  // Beside 1e16 doubles are 2 apart: a 1 that is added to it alone is lost (ties go to even), so
  // the order of the additions shows.
  const auto with_large_first = [](size_t n) {
    std::vector<double> values(n, 1.0);
    values[0] = 1e16;
    return values;
  };
  EXPECT_EQ(numpy_sum(with_large_first(7)), 1e16);          // left to right: all six are lost
  EXPECT_EQ(numpy_sum(with_large_first(8)), 1e16 + 6);      // (1e16 + 1) + 2, then + 4
  EXPECT_EQ(numpy_sum(with_large_first(10)), 1e16 + 8);     // + 1 rounds up, + 1 down
  EXPECT_EQ(numpy_sum(with_large_first(16)), 1e16 + 14);    // + 2, then + 4, then + 8
  EXPECT_EQ(numpy_sum(with_large_first(136)), 1e16 + 128);  // 56 of the first 64, 72 of the others
  EXPECT_EQ(numpy_sum(std::vector<double>{}), 0.0);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/optim/update_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sevenfold/core/random.h"

namespace sevenfold {
namespace {

template <typename T>
std::vector<T> uniform_values(size_t count) {
  const ElementStream stream = ElementStream::hot("values");
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(stream.uniform(i));
  return values;
}

// The order that the header promises, written plainly: 32 partial sums, then halves onto halves.
template <typename T>
double sum_in_fixed_order(const std::vector<T>& values) {
  std::vector<double> lanes(32, 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    lanes[i % 32] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  for (size_t width = 16; width > 0; width /= 2) {
    for (size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

TEST(SumOfSquares, HasTheBitsOfItsFixedOrder) {
  for (const size_t count : {0u, 1u, 31u, 32u, 33u, 1000u, 4099u}) {
    const auto floats = uniform_values<float>(count);
    EXPECT_EQ(sum_of_squares(floats.data(), static_cast<int64_t>(count)),
              sum_in_fixed_order(floats));
    const auto doubles = uniform_values<double>(count);
    EXPECT_EQ(sum_of_squares(doubles.data(), static_cast<int64_t>(count)),
              sum_in_fixed_order(doubles));
  }
}

// Whole and in uneven pieces: what a different number of threads does.
template <typename T>
void expect_same_bits_in_pieces() {
  constexpr size_t kCount = 1003, kCut = 377;
  const std::vector<T> gradient = uniform_values<T>(kCount);
  const AdamWFactors factors{.lr = 0.01,
                             .beta1 = 0.9,
                             .beta2 = 0.95,
                             .eps = 1e-8,
                             .weight_decay = 0.1,
                             .correction1 = 0.1,
                             .correction2 = 0.05};
  std::vector<std::vector<T>> results;
  for (const size_t cut : {size_t{0}, kCut}) {
    std::vector<T> weight = uniform_values<T>(kCount), m(kCount, T{0}), v(kCount, T{0});
    const auto update = [&](size_t begin, size_t end) {
      adamw_update(AdamWArrays<T>{.weight = weight.data() + begin,
                                  .gradient = gradient.data() + begin,
                                  .exp_avg = {.full = m.data() + begin},
                                  .exp_avg_sq = {.full = v.data() + begin}},
                   static_cast<int64_t>(end - begin), factors);
    };
    update(0, cut);
    update(cut, kCount);
    results.push_back(weight);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Fp16Unit, PutsTheMaximumIntoTheUpperQuarterOfTheRange) {
  EXPECT_EQ(fp16_unit(1.0F), 0x1p-14F);
  EXPECT_EQ(fp16_unit(std::nextafter(1.0F, 0.0F)), 0x1p-15F);
  EXPECT_EQ(fp16_unit(3e-12F), 0x1p-53F) << "3.3e-12 / 2^14";
  EXPECT_EQ(fp16_unit(1e38F), 0x1p112F);
  EXPECT_EQ(fp16_unit(1e-44F), 0x1p-126F) << "no smaller one has an inverse";
  for (const float none : {0.0F, INFINITY, NAN}) EXPECT_EQ(fp16_unit(none), 1.0F);
}

TEST(AdamWMaxima, AreThoseOfTheMeansAfterTheStep) {
  constexpr size_t kCount = 1003;
  const std::vector<float> gradient = uniform_values<float>(kCount);
  const AdamWFactors factors{.beta1 = 0.9, .beta2 = 0.95, .gradient_scale = 0.5};
  std::vector<float> weight(kCount, 0.0F), m = uniform_values<float>(kCount), v(m);
  for (float& value : v) value = value * value;
  m[7] = -3.0F;
  const AdamWArrays<float> arrays{.weight = weight.data(),
                                  .gradient = gradient.data(),
                                  .exp_avg = {.full = m.data()},
                                  .exp_avg_sq = {.full = v.data()}};
  const MomentMaxima maxima = adamw_maxima(arrays, kCount, factors);
  adamw_update(arrays, kCount, factors);
  float largest_m = 0.0F, largest_v = 0.0F;
  for (const float value : m) largest_m = std::max(largest_m, std::abs(value));
  for (const float value : v) largest_v = std::max(largest_v, value);
  EXPECT_EQ(maxima.exp_avg, largest_m);
  EXPECT_EQ(maxima.exp_avg_sq, largest_v);
}

TEST(AdamWUpdate, HasTheSameBitsHoweverTheRangeIsCut) {
  expect_same_bits_in_pieces<float>();
  expect_same_bits_in_pieces<double>();
}

}  // namespace
}  // namespace sevenfold

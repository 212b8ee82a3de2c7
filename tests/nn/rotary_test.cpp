#include "sevenfold/nn/rotary.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

namespace sevenfold {
namespace {

at::Tensor random_tensor(std::vector<int64_t> shape) {
  return at::randn(shape, at::TensorOptions(at::kDouble));
}

// Pair i of `rotary` components as a complex number.
std::complex<double> pair(const at::Tensor& head, int64_t i, int64_t rotary, bool interleaved) {
  const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + rotary / 2;
  return {head[first].item<double>(), head[second].item<double>()};
}

void expect_turned(const at::Tensor& x, const at::Tensor& y, const RotaryOptions& options,
                   const at::Tensor& positions) {
  const auto rotary =
      static_cast<int64_t>(static_cast<double>(options.head_size) * options.percent);
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t t = 0; t < x.size(1); ++t) {
      const auto position = static_cast<double>(positions[b][t].item<int64_t>());
      for (int64_t i = 0; i < rotary / 2; ++i) {
        const double angle =
            position / options.interpolation *
            std::pow(options.base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary));
        const auto before = pair(x[b][t][1], i, rotary, options.interleaved);
        const auto after = pair(y[b][t][1], i, rotary, options.interleaved);
        EXPECT_LT(std::abs(after - before * std::polar(1.0, angle)), 1e-13);
      }
      const int64_t rest = options.head_size - rotary;
      EXPECT_TRUE(at::equal(x[b][t].narrow(1, rotary, rest), y[b][t].narrow(1, rotary, rest)));
    }
}

TEST(Rotary, TurnsPairsByTheAnglesOfTheirPositions) {
  at::manual_seed(3);
  const at::Tensor in_order = at::arange(6, at::kLong).repeat({2, 1});
  const at::Tensor reset = at::tensor({0, 1, 2, 0, 1, 0, 0, 1, 2, 3, 9, 8}, at::kLong).view({2, 6});
  for (const bool interleaved : {false, true})
    for (const double percent : {1.0, 0.5})
      for (const double interpolation : {1.0, 4.0}) {
        const RotaryOptions options{.length = 10,
                                    .head_size = 12,
                                    .percent = percent,
                                    .base = 50.0,
                                    .interleaved = interleaved,
                                    .interpolation = interpolation};
        const RotaryTable table = rotary_table(options, at::kDouble);
        const at::Tensor x = random_tensor({2, 6, 3, 12});
        expect_turned(x, rotate(x, table), options, in_order);
        expect_turned(x, rotate(x, table, reset), options, reset);
      }
}

TEST(Rotary, OfPositionsInOrderNeedsNoPositions) {
  const RotaryTable table = rotary_table({.length = 6, .head_size = 8}, at::kDouble);
  const at::Tensor x = random_tensor({2, 6, 3, 8});
  EXPECT_TRUE(
      at::equal(rotate(x, table), rotate(x, table, at::arange(6, at::kLong).repeat({2, 1}))));
}

// Frequencies that Llama 3.1 publishes its scaling for: 128 components, base 500,000, 8,192
// positions, factor 8, bands 1 and 4.
TEST(Rotary, ScalesSlowFrequenciesAsLlama3) {
  const RopeScaling scaling{};
  const std::vector<double> plain = rotary_frequencies(128, 500'000.0, {});
  const std::vector<double> scaled = rotary_frequencies(128, 500'000.0, scaling);
  ASSERT_EQ(scaled.size(), 64U);
  int64_t kept = 0, mixed = 0, divided = 0;
  for (size_t i = 0; i < scaled.size(); ++i) {
    const double turns = 8192.0 * plain[i] / (2 * std::numbers::pi);  // within the old length
    if (turns > 4.0) {
      EXPECT_EQ(scaled[i], plain[i]);
      ++kept;
    } else if (turns < 1.0) {
      EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 8.0);
      ++divided;
    } else {
      const double share = (turns - 1.0) / 3.0;
      EXPECT_NEAR(scaled[i], plain[i] * (share + (1 - share) / 8.0), 1e-18);
      ++mixed;
    }
  }
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(mixed, 6);
  EXPECT_EQ(divided, 29);
}

}  // namespace
}  // namespace sevenfold

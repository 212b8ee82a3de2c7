#include "sevenfold/core/narrow_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sevenfold {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a 16-bit pattern with `fraction_bits` bits of fraction, from the definition.
double value_of(uint32_t bits, int fraction_bits, int bias) {
  const uint32_t exponent = (bits & 0x7FFFu) >> fraction_bits;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1u);
  const double share = std::ldexp(static_cast<double>(fraction), -fraction_bits);
  const double magnitude = exponent == 0
                               ? std::ldexp(share, 1 - bias)
                               : std::ldexp(1.0 + share, static_cast<int>(exponent) - bias);
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

// Every finite number of the format is a fixed point; halfway between two neighbours goes to the
// even one, and a float just beyond halfway to the nearer.
void expect_rounds_to_nearest_even(uint16_t (*round)(float), int fraction_bits, int bias) {
  const uint32_t infinity = 0x7FFFu >> fraction_bits << fraction_bits;
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double low = value_of(bits, fraction_bits, bias);
    const double high = value_of(bits + 1, fraction_bits, bias);
    ASSERT_EQ(round(static_cast<float>(low)), bits);
    ASSERT_EQ(round(static_cast<float>(-low)), bits | 0x8000u);
    const auto middle = static_cast<float>((low + high) / 2);
    if (static_cast<double>(middle) != (low + high) / 2) continue;  // below the floats
    ASSERT_EQ(round(middle), bits + (bits & 1u)) << low << " and " << high;
    ASSERT_EQ(round(std::nextafter(middle, kInfinity)), bits + 1);
    ASSERT_EQ(round(std::nextafter(middle, -kInfinity)), bits);
  }
  EXPECT_EQ(round(kInfinity), infinity);
  EXPECT_EQ(round(-kInfinity), infinity | 0x8000u);
  const uint16_t nan = round(std::numeric_limits<float>::quiet_NaN());
  EXPECT_GT(nan & 0x7FFFu, infinity);
}

uint16_t round_to_bf16(float value) {
  return static_cast<uint16_t>(to_bfloat16(value));
}

uint16_t round_to_fp16(float value) {
  return static_cast<uint16_t>(to_float16(value));
}

TEST(Rounding, ToBf16IsToNearestEven) {
  expect_rounds_to_nearest_even(round_to_bf16, 7, 127);
}

TEST(Rounding, ToFp16IsToNearestEvenWithSubnormalsAndOverflow) {
  expect_rounds_to_nearest_even(round_to_fp16, 10, 15);
  EXPECT_EQ(round_to_fp16(65519.9f), 0x7BFFu);
  EXPECT_EQ(round_to_fp16(65520.0f), 0x7C00u);
  EXPECT_EQ(round_to_fp16(1e30f), 0x7C00u);
  EXPECT_EQ(round_to_fp16(-1e-30f), 0x8000u);
}

}  // namespace
}  // namespace sevenfold

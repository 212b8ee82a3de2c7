#include "sevenfold/dist/threads/combine.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace sevenfold::threads {
namespace {

template <typename T>
std::vector<std::vector<T>> combined(ElementType type, Reduction reduction,
                                     std::vector<std::vector<T>> members) {
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> destinations;
  for (std::vector<T>& each : members) {
    sources.push_back(reinterpret_cast<const std::byte*>(each.data()));
    destinations.push_back(reinterpret_cast<std::byte*>(each.data()));
  }
  combine(type, reduction, sources, destinations, 0, static_cast<int64_t>(members[0].size()));
  return members;
}

// The value of bf16 bits, and its rounding written the slow way: to the nearer neighbour, ties to
// even.
float bf16_value(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

uint16_t nearest_bf16(float value) {
  const auto down = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  const auto up = static_cast<uint16_t>(down + 1);
  const double below = std::abs(double{value} - double{bf16_value(down)});
  const double above = std::abs(double{bf16_value(up)} - double{value});
  if (below == above) return down % 2 == 0 ? down : up;
  return below < above ? down : up;
}

TEST(Combine, SumsInTheOrderOfTheSources) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(-1.f, 1.f);
  for (int64_t num_members : {2, 3, 4, 8}) {
    std::vector<std::vector<float>> members(num_members, std::vector<float>(5001));
    for (auto& member : members) {
      for (float& value : member) value = values(random) * std::exp2(values(random) * 20.f);
    }
    const auto results = combined(ElementType::kFloat32, Reduction::kSum, members);
    for (size_t i = 0; i < members[0].size(); ++i) {
      float expected = members[0][i];
      for (size_t m = 1; m < members.size(); ++m) expected += members[m][i];
      for (const auto& result : results) ASSERT_EQ(result[i], expected) << i;
    }
  }
}

TEST(Combine, RoundsBfloat16OnceAfterAnFp32Sum) {
  std::mt19937 random(2);
  std::uniform_int_distribution<uint16_t> exponents(0x3e00, 0x4100);
  std::vector<std::vector<uint16_t>> members(4, std::vector<uint16_t>(3000));
  for (auto& member : members) {
    for (uint16_t& bits : member) bits = exponents(random);
  }
  const auto results = combined(ElementType::kBFloat16, Reduction::kSum, members);
  for (size_t i = 0; i < members[0].size(); ++i) {
    float sum = bf16_value(members[0][i]);
    for (size_t m = 1; m < members.size(); ++m) sum += bf16_value(members[m][i]);
    for (const auto& result : results) ASSERT_EQ(result[i], nearest_bf16(sum)) << i;
  }
}

TEST(Combine, SumsHalfPrecisionThroughSubnormalsAndOverflow) {
  const uint16_t least = 0x0001, smallest_normal = 0x0400, one = 0x3c00, largest = 0x7bff;
  const uint16_t minus_one = 0xbc00, infinity = 0x7c00, not_a_number = 0x7e00;
  const auto result = combined<uint16_t>(
      ElementType::kFloat16, Reduction::kSum,
      {{least, 0x03ff, one, largest, one, infinity, not_a_number, 0x3c01, 0x3c01},
       {least, least, one, largest, minus_one, one, one, 0x0c00, 0x1000}})[0];
  EXPECT_EQ(result[0], 0x0002);
  EXPECT_EQ(result[1], smallest_normal);
  EXPECT_EQ(result[2], 0x4000);
  EXPECT_EQ(result[3], infinity);
  EXPECT_EQ(result[4], 0x0000);
  EXPECT_EQ(result[5], infinity);
  EXPECT_EQ(result[6] & 0x7fff, not_a_number);
  EXPECT_EQ(result[7], 0x3c01);  // 2^-12 is a quarter of the last place
  EXPECT_EQ(result[8], 0x3c02);  // 2^-11 is half of it: ties go to even
}

TEST(Combine, WrapsIntegersAndTakesTheirMaximum) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(combined<int32_t>(ElementType::kInt32, Reduction::kSum, {{kMost, -5}, {1, 3}})[1],
            (std::vector<int32_t>{std::numeric_limits<int32_t>::min(), -2}));
  EXPECT_EQ(combined<int64_t>(ElementType::kInt64, Reduction::kMax, {{-7, 4}, {-9, 5}, {-8, 6}})[0],
            (std::vector<int64_t>{-7, 6}));
  EXPECT_EQ(combined<uint8_t>(ElementType::kUInt8, Reduction::kSum, {{200, 1}, {100, 2}})[0],
            (std::vector<uint8_t>{44, 3}));
}

TEST(Combine, MaximumKeepsNanWhereverItStands) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto result = combined<double>(ElementType::kFloat64, Reduction::kMax,
                                       {{1, nan, 2, -1}, {2, 3, nan, -2}, {0, 5, 1, -3}})[2];
  EXPECT_EQ(result[0], 2);
  EXPECT_TRUE(std::isnan(result[1]));
  EXPECT_TRUE(std::isnan(result[2]));
  EXPECT_EQ(result[3], -1);
}

TEST(Combine, TouchesOnlyItsRange) {
  std::array<float, 6> left{1, 1, 1, 1, 1, 1};
  std::array<float, 6> right{2, 2, 2, 2, 2, 2};
  const std::array<const std::byte*, 2> sources{reinterpret_cast<const std::byte*>(left.data()),
                                                reinterpret_cast<const std::byte*>(right.data())};
  const std::array<std::byte*, 1> destinations{reinterpret_cast<std::byte*>(left.data())};
  combine(ElementType::kFloat32, Reduction::kSum, sources, destinations, 2, 3);
  EXPECT_EQ(left, (std::array<float, 6>{1, 1, 3, 3, 3, 1}));
  EXPECT_EQ(right[2], 2);
}

}  // namespace
}  // namespace sevenfold::threads

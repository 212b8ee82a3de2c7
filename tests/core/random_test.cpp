#include "sevenfold/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace sevenfold {
namespace {

using nlohmann::json;

const json& golden() {
  static const json kGolden =
      json::parse(std::ifstream(SEVENFOLD_SOURCE_DIR "/tests/golden/hotstart.json"));
  return kGolden;
}

// A start value of the hot start from u, by the kind of the parameter.
double start_value(const json& tensor, double u) {
  const std::string kind = tensor.at("kind");
  if (kind == "table") return std::sqrt(3.0) * 0.3 * u;
  if (kind == "gain") return 1.0 + 0.1 * u;
  if (kind == "bias") return 0.1 * u;
  const auto fan_in = tensor.at("shape").back().get<double>();
  return std::sqrt(3.0) * 1.7 / std::sqrt(fan_in) * u;
}

uint64_t num_elements(const json& tensor) {
  uint64_t count = 1;
  for (const json& size : tensor.at("shape")) count *= size.get<uint64_t>();
  return count;
}

TEST(Fnv1a, EqualsThePublishedVectors) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("b"), 0xaf63df4c8601f1a5u);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);
}

TEST(Fnv1a, EqualsTheGoldenOfEveryName) {
  for (const json& tensor : golden().at("tensors"))
    EXPECT_EQ(std::to_string(fnv1a64(tensor.at("name").get<std::string>())), tensor.at("fnv1a"));
}

TEST(HotStart, UniformEqualsTheGoldenBitForBit) {
  ASSERT_FALSE(golden().at("tensors").empty());
  for (const json& tensor : golden().at("tensors")) {
    const std::string name = tensor.at("name");
    const ElementStream stream = ElementStream::hot(name);
    for (size_t k = 0; k < tensor.at("u").size(); ++k) {
      const double u = stream.uniform(k);
      EXPECT_EQ(u, tensor.at("u")[k].get<double>()) << name << " element " << k;
      // The integer that u stands for shows that no bit was lost in printing.
      EXPECT_EQ(std::to_string(static_cast<int64_t>(u * 0x1p52)), tensor.at("u_times_2_to_52")[k])
          << name;
    }
    const json& last = tensor.at("u_last");
    EXPECT_EQ(stream.uniform(last.at("index")), last.at("u").get<double>()) << name;
  }
}

TEST(HotStart, StartValuesEqualTheGoldenBitForBit) {
  for (const json& tensor : golden().at("tensors")) {
    const std::string name = tensor.at("name");
    const ElementStream stream = ElementStream::hot(name);
    for (size_t k = 0; k < tensor.at("start").size(); ++k)
      EXPECT_EQ(start_value(tensor, stream.uniform(k)), tensor.at("start")[k].get<double>())
          << name << " element " << k;
  }
}

TEST(HotStart, NormsAndSumsOfWholeTensorsEqualTheGolden) {
  for (const json& tensor : golden().at("tensors")) {
    const std::string name = tensor.at("name");
    const ElementStream stream = ElementStream::hot(name);
    double sum = 0.0;
    double square = 0.0;
    for (uint64_t k = 0; k < num_elements(tensor); ++k) {
      const double value = start_value(tensor, stream.uniform(k));
      sum += value;
      square += value * value;
    }
    EXPECT_NEAR(std::sqrt(square), tensor.at("start_l2").get<double>(), 1e-11) << name;
    EXPECT_NEAR(sum, tensor.at("start_sum").get<double>(), 1e-10) << name;
  }
}

TEST(SeededStart, SeedAndNameBothChangeEveryDraw) {
  const ElementStream one = ElementStream::seeded("w", 1);
  const ElementStream two = ElementStream::seeded("w", 2);
  const ElementStream other = ElementStream::seeded("v", 1);
  for (uint64_t k = 0; k < 100; ++k) {
    EXPECT_EQ(one.bits(k), ElementStream::seeded("w", 1).bits(k));
    EXPECT_NE(one.bits(k), two.bits(k));
    EXPECT_NE(one.bits(k), other.bits(k));
    EXPECT_EQ(ElementStream::seeded("w", 0).bits(k), ElementStream::hot("w").bits(k));
  }
}

// Quantiles to 17 digits from 40-digit arithmetic, at the double nearest to the p written here.
constexpr std::pair<double, double> kQuantiles[] = {
    {0.6, 0.25334710313579974},     {0.75, 0.67448975019608174},    {0.9, 1.2815515655446006},
    {0.925, 1.4395314709384562},    {0.95, 1.6448536269514723},     {0.975, 1.9599639845400539},
    {0.99, 2.3263478740408408},     {0.999, 3.0902323061678133},    {0.9999, 3.7190164854557084},
    {0.001, -3.0902323061678135},   {1e-4, -3.7190164854556806},    {1e-6, -4.7534243088228990},
    {1e-9, -5.9978070150076869},    {0x1p-30, -6.0093535655307439}, {1e-12, -7.0344838253011319},
    {0x1p-52, -8.1258906647019069}, {0x1p-53, -8.2095361516013869}};

TEST(InverseNormal, EqualsKnownQuantiles) {
  for (const auto& [p, z] : kQuantiles) EXPECT_NEAR(inverse_normal(p) / z, 1.0, 2e-15) << "p=" << p;
  EXPECT_EQ(inverse_normal(0.5), 0.0);
}

TEST(InverseNormal, IsSymmetricAboutOneHalf) {
  for (int k = 1; k < 512; ++k) {  // k / 1024 and its complement are exact
    const double p = k / 1024.0;
    EXPECT_EQ(inverse_normal(p), -inverse_normal(1.0 - p)) << "p=" << p;
  }
}

TEST(InverseNormal, GrowsThroughTheBordersOfItsThreeRegions) {
  double before = inverse_normal(1e-16);
  for (int k = -159; k <= -4;
       ++k) {  // 10^-15.9 .. 10^-0.4: both tails' formulas and the central one
    const double z = inverse_normal(std::pow(10.0, k / 10.0));
    EXPECT_GT(z, before) << "p=1e" << k / 10.0;
    before = z;
  }
}

// z = sqrt(-2 ln p) + ... is as good as the logarithm beneath it: undo the quantile by erfc of
// libm.
TEST(InverseNormal, TailsAreUndoneByTheComplementaryErrorFunction) {
  for (int k = 1; k <= 50; ++k) {
    const double p = std::ldexp(0.7, -k);
    const double back = 0.5 * std::erfc(-inverse_normal(p) / std::sqrt(2.0));
    EXPECT_NEAR(back / p, 1.0, 1e-13) << "p=" << p;  // an ulp of z is worth z^2 ulps of p
  }
}

TEST(Normal, HasMeanVarianceAndTailsOfTheStandardNormal) {
  const ElementStream stream = ElementStream::seeded("model.layers.0.mlp.gate_proj.weight", 1234);
  constexpr int kDraws = 200'000;
  double sum = 0.0, square = 0.0, fourth = 0.0;
  int beyond_two = 0;
  for (int k = 0; k < kDraws; ++k) {
    const double z = stream.normal(static_cast<uint64_t>(k));
    sum += z;
    square += z * z;
    fourth += z * z * z * z;
    beyond_two += std::fabs(z) > 2.0;
  }
  // Five standard errors each: 1/sqrt(n), sqrt(2/n), sqrt(96/n), sqrt(pq/n).
  EXPECT_NEAR(sum / kDraws, 0.0, 0.0112);
  EXPECT_NEAR(square / kDraws, 1.0, 0.0159);
  EXPECT_NEAR(fourth / kDraws, 3.0, 0.11);
  EXPECT_NEAR(beyond_two / static_cast<double>(kDraws), 0.04550026, 0.0024);
}

TEST(Normal, FollowsTheUniformOfTheSameElement) {
  const ElementStream stream = ElementStream::hot("w");
  for (uint64_t k = 0; k < 1000; ++k) {
    const double p = 0.5 * (stream.uniform(k) + 1.0);
    if (p < 0.01 || p > 0.99) continue;  // steep tails turn the half cell between the two into more
    EXPECT_NEAR(stream.normal(k), inverse_normal(p), 1e-12);
  }
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/core/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// The vectors that the Random123 distribution publishes: zeros, ones, digits of pi.
TEST(Philox, GivesThePublishedAnswers) {
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(
      philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      (PhiloxCounter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

uint64_t splitmix_finalizer(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The mapping of the header, number by number.
uint32_t number(const RandomSite& site, int64_t sample, int64_t position, int64_t column) {
  const uint64_t place = (static_cast<uint64_t>(site.layer) << 32) +
                         (static_cast<uint64_t>(site.operation) << 24) +
                         static_cast<uint64_t>(site.head);
  const uint64_t key = splitmix_finalizer(splitmix_finalizer(site.seed) + place);
  const auto wide = static_cast<uint64_t>(sample);
  const PhiloxCounter counter = {static_cast<uint32_t>(column / 4), static_cast<uint32_t>(position),
                                 static_cast<uint32_t>(wide), static_cast<uint32_t>(wide >> 32)};
  return philox4x32(counter, {static_cast<uint32_t>(key),
                              static_cast<uint32_t>(key >> 32)})[static_cast<size_t>(column % 4)];
}

constexpr RandomSite kSite{
    .seed = 1234, .layer = 5, .operation = RandomOperation::kAttentionDropout, .head = 3};

TEST(RandomStream, DrawsTheNumbersOfTheDocumentedMapping) {
  const RandomStream stream(kSite);
  for (const int64_t sample : {int64_t{0}, int64_t{7}, int64_t{5'000'000'000}}) {
    std::vector<uint32_t> numbers(70);
    stream.draw(sample, 11, 0, numbers);
    for (int64_t column = 0; column < 70; ++column)
      EXPECT_EQ(numbers[static_cast<size_t>(column)], number(kSite, sample, 11, column)) << column;
  }
}

TEST(RandomStream, DrawsAnySliceOfTheColumnsAsPartOfTheWhole) {
  const RandomStream stream(kSite);
  std::vector<uint32_t> whole(100);
  stream.draw(2, 9, 0, whole);
  for (const int64_t first : {1, 3, 4, 33, 63})
    for (const size_t count : {0, 1, 2, 5, 36}) {
      std::vector<uint32_t> part(count);
      stream.draw(2, 9, first, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first;
    }
}

TEST(RandomStream, ChangesWithEveryCoordinate) {
  const auto first = [](RandomSite site, int64_t sample, int64_t position, int64_t column) {
    std::vector<uint32_t> numbers(1);
    RandomStream(site).draw(sample, position, column, numbers);
    return numbers[0];
  };
  RandomSite other_seed = kSite, other_layer = kSite, other_operation = kSite, other_head = kSite;
  other_seed.seed += 1;
  other_layer.layer += 1;
  other_operation.operation = RandomOperation::kAttentionOutputDropout;
  other_head.head += 1;
  const std::set<uint32_t> all = {
      first(kSite, 4, 5, 6),           first(kSite, 5, 5, 6),
      first(kSite, 4, 6, 6),           first(kSite, 4, 5, 7),
      first(kSite, 4, 5, 10),          first(kSite, 4 + (int64_t{1} << 32), 5, 6),
      first(other_seed, 4, 5, 6),      first(other_layer, 4, 5, 6),
      first(other_operation, 4, 5, 6), first(other_head, 4, 5, 6)};
  EXPECT_EQ(all.size(), 10U);
}

// Mean 1/2 within five standard deviations, over columns and over samples.
TEST(RandomStream, IsUniform) {
  constexpr int kCount = 20'000;
  const double bound = 5 * 0.2887 / std::sqrt(double{kCount});
  std::vector<uint32_t> columns(kCount);
  const RandomStream stream(kSite);
  stream.draw(0, 0, 0, columns);
  double over_columns = 0.0, over_samples = 0.0;
  for (int i = 0; i < kCount; ++i) {
    over_columns += columns[static_cast<size_t>(i)] * 0x1p-32 / kCount;
    std::vector<uint32_t> one(1);
    stream.draw(i, 3, 1, one);
    over_samples += one[0] * 0x1p-32 / kCount;
  }
  EXPECT_NEAR(over_columns, 0.5, bound);
  EXPECT_NEAR(over_samples, 0.5, bound);
}

TEST(RandomStream, RefusesSitesBeyondItsKey) {
  EXPECT_THROW(RandomStream(RandomSite{.layer = int64_t{1} << 31}), InternalError);
  EXPECT_THROW(RandomStream(RandomSite{.head = int64_t{1} << 24}), InternalError);
  EXPECT_THROW(RandomStream(RandomSite{.layer = -1}), InternalError);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/core/philox.h"

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/core/random.h"

namespace sevenfold {
namespace {

// Multipliers and key increments of Philox 4x32.
constexpr uint64_t kMultiplier0 = 0xD2511F53u;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kIncrement0 = 0x9E3779B9u;
constexpr uint32_t kIncrement1 = 0xBB67AE85u;
constexpr uint32_t kRounds = 10;

// Counters that are advanced side by side: enough for the compiler to use vector registers.
constexpr int kLanes = 8;
struct Lanes {
  uint32_t word[4][kLanes];
};

// Unrolled rounds, one counter after the other: so the compiler works on several at once.
void advance(Lanes& lanes, PhiloxKey key) {
  uint32_t* __restrict w0 = lanes.word[0];
  uint32_t* __restrict w1 = lanes.word[1];
  uint32_t* __restrict w2 = lanes.word[2];
  uint32_t* __restrict w3 = lanes.word[3];
  const uint32_t key0 = key[0], key1 = key[1];
  for (int lane = 0; lane < kLanes; ++lane) {
    uint32_t a = w0[lane], b = w1[lane], c = w2[lane], d = w3[lane];
#pragma GCC unroll 10
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t product0 = kMultiplier0 * a, product1 = kMultiplier1 * c;
      a = static_cast<uint32_t>(product1 >> 32) ^ b ^ (key0 + round * kIncrement0);
      b = static_cast<uint32_t>(product1);
      c = static_cast<uint32_t>(product0 >> 32) ^ d ^ (key1 + round * kIncrement1);
      d = static_cast<uint32_t>(product0);
    }
    w0[lane] = a;
    w1[lane] = b;
    w2[lane] = c;
    w3[lane] = d;
  }
}

PhiloxKey site_key(const RandomSite& site) {
  SEVENFOLD_CHECK(0 <= site.layer && site.layer < (int64_t{1} << 31), "layer {}", site.layer);
  SEVENFOLD_CHECK(0 <= site.head && site.head < (int64_t{1} << 24), "head {}", site.head);
  const uint64_t place = static_cast<uint64_t>(site.layer) << 32 |
                         static_cast<uint64_t>(site.operation) << 24 |
                         static_cast<uint64_t>(site.head);
  const uint64_t key = scatter64(scatter64(site.seed) + place);
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  Lanes lanes{};
  for (size_t word = 0; word < 4; ++word) lanes.word[word][0] = counter[word];
  advance(lanes, key);
  return {lanes.word[0][0], lanes.word[1][0], lanes.word[2][0], lanes.word[3][0]};
}

RandomStream::RandomStream(const RandomSite& site) : key_(site_key(site)) {}

void RandomStream::draw(int64_t sample, int64_t position, int64_t first_column,
                        std::span<uint32_t> numbers) const {
  const auto end = first_column + static_cast<int64_t>(numbers.size());
  for (int64_t counter = first_column / 4; counter * 4 < end; counter += kLanes) {
    Lanes lanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes.word[0][lane] = static_cast<uint32_t>(counter + lane);
      lanes.word[1][lane] = static_cast<uint32_t>(position);
      lanes.word[2][lane] = static_cast<uint32_t>(sample);
      lanes.word[3][lane] = static_cast<uint32_t>(static_cast<uint64_t>(sample) >> 32);
    }
    advance(lanes, key_);
    uint32_t row[4 * kLanes];  // in the order of the columns
    for (int lane = 0; lane < kLanes; ++lane)
      for (int word = 0; word < 4; ++word) row[4 * lane + word] = lanes.word[word][lane];
    const int64_t begin = std::max(first_column, counter * 4);
    const int64_t stop = std::min(end, (counter + kLanes) * 4);
    std::copy(row + begin - counter * 4, row + stop - counter * 4,
              numbers.begin() + (begin - first_column));
  }
}

}  // namespace sevenfold

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
constexpr int kRounds = 10;

// Counters that are advanced side by side: enough for the compiler to use vector registers.
constexpr int kLanes = 8;
struct Lanes {
  uint32_t word[4][kLanes];
};

void advance(Lanes& lanes, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t product0 = kMultiplier0 * lanes.word[0][lane];
      const uint64_t product1 = kMultiplier1 * lanes.word[2][lane];
      const uint32_t word1 = lanes.word[1][lane], word3 = lanes.word[3][lane];
      lanes.word[0][lane] = static_cast<uint32_t>(product1 >> 32) ^ word1 ^ key[0];
      lanes.word[1][lane] = static_cast<uint32_t>(product1);
      lanes.word[2][lane] = static_cast<uint32_t>(product0 >> 32) ^ word3 ^ key[1];
      lanes.word[3][lane] = static_cast<uint32_t>(product0);
    }
    key[0] += kIncrement0;
    key[1] += kIncrement1;
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

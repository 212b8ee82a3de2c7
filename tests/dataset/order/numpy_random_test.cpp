#include "sevenfold/dataset/order/numpy_random.h"

#include <gmock/gmock.h>

#include <numeric>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using testing::fnv1a64_of;
using testing::megatron_golden;

TEST(NumpyRandom, DrawsTheWordsOfMersenneTwister) {
  for (const auto& entry : megatron_golden()["rng"]["mt19937_first_8"]) {
    NumpyRandom random(entry["seed"].get<uint64_t>());
    for (const auto& word : entry["first_8_uint32"])
      EXPECT_EQ(random.bits32(), word.get<uint32_t>());
  }
}

TEST(NumpyRandom, ShufflesAsNumpyAndLeavesTheGeneratorWhereNumpyDoes) {
  for (const auto& entry : megatron_golden()["rng"]["shuffle_of_arange"]) {
    SCOPED_TRACE(entry["n"].dump() + " seed " + entry["seed"].dump());
    NumpyRandom random(entry["seed"].get<uint64_t>());
    std::vector<int64_t> values(entry["n"].get<size_t>());
    std::iota(values.begin(), values.end(), int64_t{0});
    random.shuffle(values);
    EXPECT_EQ(fnv1a64_of(values), entry["fnv1a64"].get<std::string>());
    if (entry.contains("next_32_bits_after")) {
      EXPECT_EQ(random.bits32(), entry["next_32_bits_after"].get<uint32_t>());
    }
  }
}

TEST(NumpyRandom, BoundedByZeroDrawsNothing) {
  NumpyRandom random(1);
  EXPECT_EQ(random.bounded(0), 0U);
  EXPECT_EQ(random.bits32(), 1791095845U);
}

TEST(NumpyRandom, BoundBeyond32BitsTakesTwoWordsHighHalfFirst) {
  NumpyRandom words(42);
  const uint64_t high = words.bits32();
  const uint64_t low = words.bits32();
  NumpyRandom random(42);
  EXPECT_EQ(random.bounded(~uint64_t{0}), high << 32 | low);
  EXPECT_EQ(random.bits32(), words.bits32());
}

TEST(NumpyRandom, RefusesASeedOfMoreThan32Bits) {
  EXPECT_NO_THROW(NumpyRandom((uint64_t{1} << 32) - 1));
  EXPECT_THROW(NumpyRandom(uint64_t{1} << 32), ConfigError);
}

}  // namespace
}  // namespace sevenfold

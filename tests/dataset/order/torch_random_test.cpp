#include "sevenfold/dataset/order/torch_random.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "dataset/golden.h"

namespace sevenfold {
namespace {

TEST(TorchRandom, PermutesAsTorchDoes) {
  int64_t num_cases = 0;
  for (const auto& entry : testing::megatron_golden()["rng"]["torch_randperm"]) {
    SCOPED_TRACE(entry["n"].dump() + " seed " + entry["seed"].dump());
    testing::expect_array(torch_randperm(entry["n"], entry["seed"].get<uint64_t>()), entry);
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 21);
}

// From the definition: a map that starts as nothing, filled element by element from 64-bit draws.
TEST(TorchRandom, FollowsTheInsideOutRuleFromItsSizeOn) {
  constexpr int64_t kSize = 1000;
  std::mt19937 engine(7);
  std::map<uint64_t, int64_t> expected;
  for (uint64_t i = 0; i < kSize; ++i) {
    const uint64_t high = engine();
    const uint64_t low = engine();
    const uint64_t place = (high * 4294967296U + low) % (i + 1);
    if (place != i) expected[i] = expected[place];
    expected[place] = static_cast<int64_t>(i);
  }
  const std::vector<int64_t> permutation = torch_randperm(kSize, 7, kSize);
  for (uint64_t i = 0; i < kSize; ++i) EXPECT_EQ(permutation[i], expected[i]) << i;
  EXPECT_NE(permutation, torch_randperm(kSize, 7, kSize + 1));
}

}  // namespace
}  // namespace sevenfold

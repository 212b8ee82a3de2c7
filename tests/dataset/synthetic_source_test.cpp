#include "sevenfold/dataset/synthetic_source.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "sevenfold/dataset/batch.h"

namespace sevenfold {
namespace {

std::vector<int64_t> read_sample(const SampleSource& source, int64_t sample) {
  std::vector<int64_t> tokens(static_cast<size_t>(source.seq_length() + 1));
  source.read(sample, tokens);
  return tokens;
}

TEST(SyntheticSource, IsAStreamThatDependsOnTheSeedAlone) {
  const SyntheticSource source({.vocab_size = 211, .seq_length = 32});
  const SyntheticSource again({.vocab_size = 211, .seq_length = 32});
  const SyntheticSource other({.vocab_size = 211, .seq_length = 32, .seed = 1});
  EXPECT_EQ(source.num_samples(), 64);
  EXPECT_EQ(read_sample(source, 0), read_sample(again, 0));
  EXPECT_NE(read_sample(source, 0), read_sample(other, 0));
  for (int64_t k = 0; k + 1 < source.num_samples(); ++k)
    EXPECT_EQ(read_sample(source, k).back(), read_sample(source, k + 1).front());
}

TEST(SyntheticSource, TrainsVeryDifferentNumbersOfLabels) {
  const SyntheticSource source({.vocab_size = 211, .seq_length = 32});
  std::vector<int64_t> counts;
  for (int64_t k = 0; k < source.num_samples(); ++k) {
    const TokenBatch batch =
        read_batch(source, std::array{k}, {.eod_mask_loss = true, .eod_token_id = 0});
    counts.push_back(batch.num_unmasked);
    EXPECT_THAT(batch.inputs,
                ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(211))));
  }
  EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), 32);
  EXPECT_EQ(*std::min_element(counts.begin(), counts.end()), 0);
  std::sort(counts.begin(), counts.end());
  EXPECT_GT(std::unique(counts.begin(), counts.end()) - counts.begin(), 10);
}

TEST(SyntheticSource, ServesTheSmallestSizes) {
  const SyntheticSource source({.vocab_size = 2, .seq_length = 1, .num_samples = 1});
  EXPECT_EQ(read_sample(source, 0).size(), 2U);
}

}  // namespace
}  // namespace sevenfold

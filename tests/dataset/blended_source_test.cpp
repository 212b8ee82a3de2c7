#include "sevenfold/dataset/blended_source.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dataset/gpt_dataset.h"
#include "sevenfold/dataset/synthetic_source.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;

std::vector<std::unique_ptr<SampleSource>> sources(int64_t count, int64_t num_samples) {
  std::vector<std::unique_ptr<SampleSource>> sets;
  for (int64_t d = 0; d < count; ++d)
    sets.push_back(
        std::make_unique<SyntheticSource>(SyntheticOptions{.vocab_size = 50,
                                                           .seq_length = 4,
                                                           .num_samples = num_samples,
                                                           .seed = static_cast<uint64_t>(d)}));
  return sets;
}

std::vector<int64_t> read_sample(const SampleSource& source, int64_t sample) {
  std::vector<int64_t> tokens(static_cast<size_t>(source.seq_length() + 1));
  source.read(sample, tokens);
  return tokens;
}

TEST(BlendedSource, ReadsSamplesOfTheSetsInTheOrderOfTheBlend) {
  const BlendedSource blended(sources(3, 8), blend(std::vector{.5, .25, .25}, 8));
  EXPECT_EQ(blended.num_samples(), 8);
  EXPECT_EQ(blended.seq_length(), 4);
  EXPECT_THAT(blended.index().dataset, ElementsAre(0, 1, 2, 0, 0, 1, 2, 0));
  EXPECT_EQ(read_sample(blended, 4), read_sample(*blended.sets()[0], 2));
  EXPECT_EQ(read_sample(blended, 6), read_sample(*blended.sets()[2], 1));
}

TEST(BlendedSource, HoldsThreeHundredSets) {
  std::vector<double> weights(300, 1.0);
  weights[299] = 3.0;
  const BlendedSource blended(sources(300, 12), blend(normalize(weights), 900));
  for (int64_t k = 0; k < 900; k += 37) {
    const auto at = static_cast<size_t>(k);
    EXPECT_EQ(read_sample(blended, k), read_sample(*blended.sets()[blended.index().dataset[at]],
                                                   blended.index().sample[at]));
  }
}

TEST(BlendedSource, RefusesABlendThatTakesMoreThanASetHas) {
  const auto blended = [](int64_t num_samples) {
    BlendedSource(sources(2, num_samples), blend(std::vector{.3, .7}, 10));
  };
  EXPECT_THAT([&] { blended(4); },
              ThrowsMessage<InternalError>(HasSubstr("7 samples of set 1, which has 4")));
  EXPECT_NO_THROW(blended(7));
}

}  // namespace
}  // namespace sevenfold

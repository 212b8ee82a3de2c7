#include "sevenfold/dataset/order/sample_stream.h"

#include <gtest/gtest.h>

#include <thread>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/synthetic_source.h"

namespace sevenfold {
namespace {

Config cyclic_config() {
  Config config;
  config.data.loader = LoaderKind::kCyclic;
  config.batch.micro_batch_size = 2;
  config.mesh.dp = 4;
  return config;
}

SyntheticSource source_of(int64_t num_samples) {
  return SyntheticSource({.vocab_size = 101, .seq_length = 8, .num_samples = num_samples});
}

TEST(SampleStream, FollowsTheLoaderOfTheExperiment) {
  const SyntheticSource source = source_of(48);
  Config config = cyclic_config();
  const auto sampler = [](int64_t dp_size) {
    return Sampler(SamplerOptions{
        .kind = LoaderKind::kCyclic, .num_samples = 48, .micro_batch_size = 2, .dp_size = dp_size});
  };
  EXPECT_EQ(SampleStream(config, source).samples(40, 24), sampler(4).samples(40, 24));
  config.data.order_dp_size = 2;
  EXPECT_EQ(SampleStream(config, source).samples(40, 24), sampler(2).samples(40, 24));
  config.data.loader = LoaderKind::kSingle;
  EXPECT_EQ(SampleStream(config, source).samples(46, 4), (std::vector<int64_t>{46, 47, 0, 1}));
  EXPECT_THROW(SampleStream(cyclic_config(), source_of(7)), ConfigError);
}

// Ranks stand in different epochs for a moment, and each asks for its own places.
TEST(SampleStream, AnswersManyThreadsAsOne) {
  const SyntheticSource source = source_of(4096);
  const Config config = cyclic_config();
  const SampleStream shared(config, source);
  std::vector<std::vector<int64_t>> read(4);
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      for (int64_t place = 2 * rank; place < 3 * 4096; place += 8)
        for (const int64_t id : shared.samples(place, 2))
          read[static_cast<size_t>(rank)].push_back(id);
    });
  for (std::thread& rank : ranks) rank.join();
  const SampleStream alone(config, source);
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::vector<int64_t> expected;
    for (int64_t place = 2 * rank; place < 3 * 4096; place += 8)
      for (const int64_t id : alone.samples(place, 2)) expected.push_back(id);
    EXPECT_EQ(read[static_cast<size_t>(rank)], expected) << rank;
  }
}

}  // namespace
}  // namespace sevenfold

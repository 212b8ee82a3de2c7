#include "sevenfold/dataset/order/sampler.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <thread>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dataset/order/torch_random.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

SamplerOptions options_of(const nlohmann::json& entry) {
  const std::string kind = entry["kind"];
  return {.kind = kind == "single" ? LoaderKind::kSingle : LoaderKind::kCyclic,
          .data_sharding = kind != "cyclic_unsharded",
          .num_samples = entry["total"],
          .micro_batch_size = entry["micro_batch"],
          .dp_size = entry["dp"]};
}

void expect_golden(const nlohmann::json& entry) {
  SCOPED_TRACE(entry["kind"].dump() + " of " + entry["total"].dump() + ", " + entry["dp"].dump() +
               " ranks, micro batch " + entry["micro_batch"].dump() + ", consumed " +
               entry["consumed"].dump());
  const SamplerOptions options = options_of(entry);
  const Sampler sampler(options);
  for (size_t rank = 0; rank < entry["ranks"].size(); ++rank) {
    const auto& batches = entry["ranks"][rank];
    for (size_t m = 0; m < batches.size(); ++m) {
      const MicrobatchPlace place = {.consumed = entry["consumed"],
                                     .microbatch = static_cast<int64_t>(m),
                                     .dp_rank = static_cast<int64_t>(rank),
                                     .dp_size = options.dp_size,
                                     .micro_batch_size = options.micro_batch_size};
      EXPECT_EQ(sampler.samples(place.first(), options.micro_batch_size),
                batches[m].get<std::vector<int64_t>>())
          << "rank " << rank << ", batch " << m;
    }
  }
}

TEST(Sampler, EqualsMegatronsLoaders) {
  for (const auto& entry : testing::megatron_golden()["sampler"]) expect_golden(entry);
  EXPECT_EQ(testing::megatron_golden()["sampler"].size(), 48U);
}

TEST(Sampler, EqualsMegatronsLoadersWhereRanksSitInDifferentEpochs) {
  for (const auto& entry : testing::megatron_golden()["sampler_rank_imbalance"])
    expect_golden(entry);
  EXPECT_EQ(testing::megatron_golden()["sampler_rank_imbalance"].size(), 4U);
}

// Megatron ends with the last whole group of `single`; the lists of the golden file are that long.
TEST(Sampler, GroupsOfSingleAreThoseThatFitTheData) {
  for (const auto& entry : testing::megatron_golden()["sampler"]) {
    if (entry["kind"] != "single") continue;
    const int64_t group = entry["dp"].get<int64_t>() * entry["micro_batch"].get<int64_t>();
    const int64_t left = entry["total"].get<int64_t>() - entry["consumed"].get<int64_t>();
    for (const auto& batches : entry["ranks"])
      EXPECT_EQ(static_cast<int64_t>(batches.size()), left / group);
  }
}

TEST(Sampler, FullValidationGivesEachRankEveryDpthSample) {
  for (const auto& entry : testing::megatron_golden()["sampler_full_validation"]) {
    const int64_t total = entry["total"];
    const int64_t dp = entry["dp"];
    for (int64_t rank = 0; rank < dp; ++rank) {
      std::vector<std::vector<int64_t>> batches;
      MicrobatchPlace place = {.dp_rank = rank, .dp_size = dp};
      for (; place.first() < total; ++place.microbatch) batches.push_back({place.first()});
      EXPECT_EQ(batches,
                entry["ranks"][static_cast<size_t>(rank)].get<std::vector<std::vector<int64_t>>>());
    }
  }
}

// The state machine that Megatron runs on every rank: a list per restart, walked batch by batch.
std::vector<std::vector<int64_t>> batches_of_iterator(
    const SamplerOptions& options, int64_t rank, size_t count,
    const std::vector<std::vector<int64_t>>& permutations) {
  const int64_t group = options.micro_batch_size * options.dp_size;
  const int64_t active = options.num_samples - options.num_samples % group;
  std::vector<std::vector<int64_t>> batches;
  int64_t consumed = 0;
  while (batches.size() < count) {
    const auto& order = permutations[static_cast<size_t>(consumed / active)];
    std::vector<int64_t> batch;
    for (auto i = static_cast<size_t>(consumed % active + rank); i < order.size();
         i += static_cast<size_t>(options.dp_size)) {
      batch.push_back(order[i]);
      if (static_cast<int64_t>(batch.size()) < options.micro_batch_size) continue;
      batches.push_back(std::move(batch));
      batch.clear();
      consumed += group;
    }
  }
  batches.resize(count);
  return batches;
}

TEST(Sampler, UnshardedOrderEqualsAWalkOfRestartedListsForAllSmallSizes) {
  constexpr size_t kBatches = 12;
  for (int64_t micro = 1; micro <= 3; ++micro)
    for (int64_t dp = 1; dp <= 4; ++dp)
      for (int64_t total = micro * dp; total < 4 * micro * dp; ++total) {
        const SamplerOptions options = {.kind = LoaderKind::kCyclic,
                                        .data_sharding = false,
                                        .num_samples = total,
                                        .micro_batch_size = micro,
                                        .dp_size = dp};
        std::vector<std::vector<int64_t>> permutations;
        for (uint64_t epoch = 0; epoch <= 2 * kBatches; ++epoch)
          permutations.push_back(torch_randperm(total / micro * micro, epoch));
        const Sampler sampler(options);
        for (int64_t rank = 0; rank < dp; ++rank) {
          const auto expected = batches_of_iterator(options, rank, kBatches, permutations);
          for (size_t m = 0; m < kBatches; ++m) {
            const MicrobatchPlace place = {0, static_cast<int64_t>(m), rank, dp, micro};
            ASSERT_EQ(sampler.samples(place.first(), micro), expected[m])
                << total << " samples, micro " << micro << ", rank " << rank << " of " << dp;
          }
        }
      }
}

// What one rank reads when it follows the order of a layout: the same samples, step by step.
TEST(Sampler, OneRankFollowsTheCyclicOrderOfALayout) {
  for (const bool sharded : {true, false}) {
    const Sampler layout({LoaderKind::kCyclic, sharded, 50, 2, 4});
    std::multiset<int64_t> of_layout;
    for (int64_t m = 0; m < 2; ++m)
      for (int64_t rank = 0; rank < 4; ++rank)
        for (const int64_t id : layout.samples(MicrobatchPlace{16, m, rank, 4, 2}.first(), 2))
          of_layout.insert(id);
    std::multiset<int64_t> of_one;
    for (int64_t m = 0; m < 8; ++m)
      for (const int64_t id : layout.samples(MicrobatchPlace{16, m, 0, 1, 2}.first(), 2))
        of_one.insert(id);
    EXPECT_EQ(of_layout, of_one);
    const Sampler own({LoaderKind::kCyclic, sharded, 50, 2, 1});
    EXPECT_NE(layout.samples(16, 16), own.samples(16, 16));
  }
}

TEST(Sampler, SingleStartsOverAtTheEndOfTheData) {
  const Sampler sampler({.num_samples = 10});
  EXPECT_THAT(sampler.samples(MicrobatchPlace{16, 1, 1, 2, 3}.first(), 3), ElementsAre(5, 6, 7));
  EXPECT_THAT(sampler.samples(8, 4), ElementsAre(8, 9, 0, 1));
}

TEST(Sampler, GlobalBatchOfSingleDoesNotDependOnTheLayout) {
  const Sampler sampler({.num_samples = 70});
  const auto global_batch = [&](int64_t dp_size, int64_t micro_batch_size) {
    std::map<int64_t, int64_t> ids;  // by place in the stream
    for (int64_t m = 0; m < 24 / (dp_size * micro_batch_size); ++m)
      for (int64_t r = 0; r < dp_size; ++r) {
        int64_t place = MicrobatchPlace{48, m, r, dp_size, micro_batch_size}.first();
        for (const int64_t id : sampler.samples(place, micro_batch_size)) ids[place++] = id;
      }
    return ids;
  };
  for (const auto& [dp_size, micro_batch_size] : {std::pair{2, 1}, {4, 2}, {3, 4}, {1, 24}})
    EXPECT_EQ(global_batch(dp_size, micro_batch_size), global_batch(1, 1));
}

TEST(Sampler, IsAskedByManyThreadsAtOnce) {
  const Sampler sampler({LoaderKind::kCyclic, true, 64, 1, 4});
  std::vector<std::vector<int64_t>> read(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : read) threads.emplace_back([&] { ids = sampler.samples(0, 640); });
  }
  EXPECT_THAT(read,
              ::testing::Each(Sampler({LoaderKind::kCyclic, true, 64, 1, 4}).samples(0, 640)));
}

TEST(Sampler, RefusesCyclicDataOfLessThanOneBatch) {
  EXPECT_THAT(
      [] {
        Sampler({LoaderKind::kCyclic, true, 7, 2, 4});
      },
      ThrowsMessage<ConfigError>(HasSubstr("2 x dp 4 = 8 samples, the data gives 7")));
  EXPECT_NO_THROW(Sampler({LoaderKind::kSingle, true, 7, 2, 4}));
}

}  // namespace
}  // namespace sevenfold

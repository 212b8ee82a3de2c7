#include "sevenfold/train/batch_loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/proof/verify.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

std::vector<int64_t> trained_tokens(const testing::Experiment& experiment, BatchPlace place,
                                    int64_t consumed) {
  const SampleStream samples(experiment.config, *experiment.data);
  const BatchLoader loader(experiment.config, samples, place, at::kDouble);
  std::vector<int64_t> counts;
  const int64_t count = experiment.config.batch.num_microbatches;
  for (const Microbatch& microbatch : loader.step(consumed, count)) {
    counts.push_back(microbatch.trained_tokens);
    EXPECT_EQ(microbatch.mask_BT.sum().item<double>(),
              static_cast<double>(microbatch.trained_tokens));
  }
  return counts;
}

TEST(BatchLoader, MasksLabelsByTheirInputToken) {
  const TemporaryDirectory directory;
  EXPECT_EQ(trained_tokens(testing::m0_experiment(directory, "D3", 1), {}, 0),
            (std::vector<int64_t>{32, 1, 16, 4, 32, 2, 8, 31}));
  EXPECT_EQ(trained_tokens(testing::m0_experiment(directory, "D4", 1), {}, 0),
            (std::vector<int64_t>{32, 0, 16, 4, 0, 2, 8, 31}));
}

TEST(BatchLoader, GivesRanksStridedMicrobatchesOfOneGlobalBatch) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::m0_experiment(directory, "D3", 2);
  EXPECT_EQ(trained_tokens(experiment, {.dp_rank = 0, .dp_size = 2}, 0),
            (std::vector<int64_t>{32, 16, 32, 8}));
  EXPECT_EQ(trained_tokens(experiment, {.dp_rank = 1, .dp_size = 2}, 0),
            (std::vector<int64_t>{1, 4, 2, 31}));
}

TEST(BatchLoader, WrapsModuloTheNumberOfSamples) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      testing::m0_experiment(directory, "D3", 2, {{"global_batch_size", 4}});
  EXPECT_EQ(trained_tokens(experiment, {.dp_rank = 1, .dp_size = 2}, 6),
            (std::vector<int64_t>{31, 1}));
}

// The order depends on dp; the one rank that a layout is compared with follows the layout's.
TEST(BatchLoader, OneRankReadsWhatALayoutReadsInCyclicOrder) {
  const TemporaryDirectory directory;
  for (const bool sharded : {true, false}) {
    testing::Experiment experiment = testing::m0_experiment(directory, "D1", 2);
    experiment.config.data.loader = LoaderKind::kCyclic;
    experiment.config.data.data_sharding = sharded;
    const auto inputs = [&](const Config& config, BatchPlace place) {
      const SampleStream samples(config, *experiment.data);
      const BatchLoader loader(config, samples, place, at::kDouble);
      std::map<int64_t, std::vector<int64_t>> rows;  // by place in the stream
      for (const Microbatch& microbatch : loader.step(64, config.batch.num_microbatches)) {
        const at::Tensor row = microbatch.inputs_BT[0].contiguous();
        const int64_t* data = row.data_ptr<int64_t>();
        rows[microbatch.sample_ids.at(0)] = {data, data + row.numel()};
      }
      return rows;
    };
    auto layout = inputs(experiment.config, {.dp_rank = 0, .dp_size = 2});
    layout.merge(inputs(experiment.config, {.dp_rank = 1, .dp_size = 2}));
    EXPECT_EQ(layout.size(), 8U);
    EXPECT_EQ(inputs(one_rank_config(experiment.config), {}), layout);
    Config alone = one_rank_config(experiment.config);
    alone.data.order_dp_size = 1;
    // With micro batches of one sample, ranks that take turns read one permutation in its order.
    EXPECT_EQ(inputs(alone, {}) == layout, !sharded);
  }
}

TEST(BatchLoader, ShiftsLabelsByOneOnTheWholeSequence) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::m0_experiment(directory, "D1", 1);
  const SampleStream samples(experiment.config, *experiment.data);
  const BatchLoader loader(experiment.config, samples, {}, at::kFloat);
  const Microbatch microbatch = loader.range(0, 2);
  EXPECT_TRUE(at::equal(microbatch.inputs_BT.slice(1, 1), microbatch.labels_BT.slice(1, 0, -1)));
  // Unshuffled samples follow each other in the token stream: the last label of one is the next
  // one's first input.
  EXPECT_EQ(microbatch.labels_BT[0][-1].item<int64_t>(),
            microbatch.inputs_BT[1][0].item<int64_t>());
  EXPECT_EQ(microbatch.mask_BT.scalar_type(), at::kFloat);
}

// 16 bytes a token of ids and labels and the mask, for every micro batch of the step; where
// documents are told apart, positions and first keys too.
TEST(BatchLoader, HoldsAStepAtItsSize) {
  install_allocator();
  const TemporaryDirectory directory;
  for (const bool by_document : {false, true}) {
    const testing::Experiment experiment = testing::m0_experiment(
        directory, "D3", 2,
        {{"reset_position_ids", by_document}, {"reset_attention_mask", by_document}});
    const SampleStream samples(experiment.config, *experiment.data);
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
      run_ranks(Mesh(MeshShape{}), {}, [&](RankContext& rank) {
        const BatchLoader loader(experiment.config, samples, {.dp_size = 2}, type);
        const std::vector<Microbatch> step = loader.step(0, 4);
        const int64_t mask = static_cast<int64_t>(c10::elementSize(type));
        EXPECT_EQ(rank.memory.live_total(),
                  4 * experiment.config.model.seq_length * (16 + mask + (by_document ? 16 : 0)));
      });
  }
}

// Dropout counts by the place in the endless stream: another one when a sample comes again.
TEST(BatchLoader, NumbersSamplesInTheEndlessStreamInTraining) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::m0_experiment(
      directory, "D3", 2, {{"global_batch_size", 8}, {"micro_batch_size", 2}});
  const SampleStream samples(experiment.config, *experiment.data);
  const BatchLoader loader(experiment.config, samples, {.dp_rank = 1, .dp_size = 2}, at::kDouble);
  const std::vector<Microbatch> step = loader.step(800, experiment.config.batch.num_microbatches);
  ASSERT_EQ(step.size(), 2U);
  EXPECT_EQ(step[0].sample_ids, (std::vector<int64_t>{802, 803}));
  EXPECT_EQ(step[1].sample_ids, (std::vector<int64_t>{806, 807}));
  EXPECT_TRUE(step[0].is_training);
  EXPECT_FALSE(loader.range(0, 2).is_training);
}

}  // namespace
}  // namespace sevenfold

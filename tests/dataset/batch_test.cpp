#include "sevenfold/dataset/batch.h"

#include <gmock/gmock.h>

#include <array>
#include <map>

#include "dataset/golden.h"
#include "sevenfold/dataset/gpt_dataset.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using testing::TemporaryDirectory;

std::vector<int64_t> trained_tokens(const std::string& fixture) {
  const TemporaryDirectory directory;
  const auto data = testing::open_fixture(directory, fixture);
  const GptDataset samples(
      data,
      {.sequences = data->all_sequences(), .seq_length = 32, .vocab_size = 101, .shuffle = false});
  std::vector<int64_t> counts;
  for (int64_t k = 0; k < samples.num_samples(); ++k)
    counts.push_back(read_batch(samples, std::array{k}, {.eod_mask_loss = true, .eod_token_id = 0})
                         .num_unmasked);
  return counts;
}

TEST(Batch, TrainsTheLabelsWhoseInputEndsNoDocument) {
  EXPECT_THAT(trained_tokens("D3"), ElementsAre(32, 1, 16, 4, 32, 2, 8, 31));
  EXPECT_THAT(trained_tokens("D4"), ElementsAre(32, 0, 16, 4, 0, 2, 8, 31));
}

TEST(Batch, EqualsMegatronsTokensLabelsAndMasks) {
  const TemporaryDirectory directory;
  for (const auto& entry : testing::megatron_golden()["masks"]) {
    SCOPED_TRACE(entry.dump());
    const auto data = testing::open_fixture(directory, entry["dataset"]);
    const GptDataset samples(data, {.sequences = data->all_sequences(),
                                    .seq_length = entry["seq_length"],
                                    .vocab_size = 101,
                                    .seed = entry["seed"]});
    MaskOptions masks;
    masks.eod_mask_loss = entry["eod_mask_loss"];
    masks.eod_token_id = entry["eod"].get<int64_t>();
    if (entry["pad"] >= 0) masks.pad_token_id = entry["pad"].get<int64_t>();
    const TokenBatch batch = read_batch(samples, std::array{entry["sample"].get<int64_t>()}, masks);
    EXPECT_EQ(batch.inputs, entry["tokens"].get<std::vector<int64_t>>());
    EXPECT_EQ(batch.labels, entry["labels"].get<std::vector<int64_t>>());
    EXPECT_EQ(batch.loss_mask, entry["loss_mask"].get<std::vector<uint8_t>>());
  }
}

TEST(Batch, StacksSequencesAndCountsTheirTrainedLabels) {
  TokenBatch batch;
  batch.seq_length = 3;
  append_sequence(batch, std::array<int64_t, 4>{1, 0, 2, 3},
                  {.eod_mask_loss = true, .eod_token_id = 0});
  append_sequence(batch, std::array<int64_t, 4>{0, 0, 4, 0},
                  {.eod_mask_loss = true, .eod_token_id = 0});
  EXPECT_EQ(batch.num_sequences, 2);
  EXPECT_THAT(batch.inputs, ElementsAre(1, 0, 2, 0, 0, 4));
  EXPECT_THAT(batch.labels, ElementsAre(0, 2, 3, 0, 4, 0));
  EXPECT_THAT(batch.loss_mask, ElementsAre(1, 0, 1, 0, 0, 1));
  EXPECT_EQ(batch.num_unmasked, 3);
}

TEST(Batch, SampleIdsAreMegatronsSingleOrder) {
  for (const auto& entry : testing::megatron_golden()["sampler"]) {
    SCOPED_TRACE(entry["dp"].dump() + " ranks, micro batch " + entry["micro_batch"].dump());
    for (size_t rank = 0; rank < entry["ranks"].size(); ++rank) {
      const auto& batches = entry["ranks"][rank];
      for (size_t m = 0; m < batches.size(); ++m) {
        const MicrobatchPlace place = {.consumed = entry["consumed"],
                                       .microbatch = static_cast<int64_t>(m),
                                       .dp_rank = static_cast<int64_t>(rank),
                                       .dp_size = entry["dp"],
                                       .micro_batch_size = entry["micro_batch"]};
        EXPECT_EQ(sample_ids(place, entry["total"]), batches[m].get<std::vector<int64_t>>());
      }
    }
  }
}

TEST(Batch, SampleIdsWrapAroundTheEndOfTheData) {
  EXPECT_THAT(
      sample_ids(
          {.consumed = 16, .microbatch = 1, .dp_rank = 1, .dp_size = 2, .micro_batch_size = 3}, 10),
      ElementsAre(5, 6, 7));
  EXPECT_THAT(sample_ids({.consumed = 8, .micro_batch_size = 4}, 10), ElementsAre(8, 9, 0, 1));
}

TEST(Batch, GlobalBatchDoesNotDependOnTheLayout) {
  const auto global_batch = [](int64_t dp_size, int64_t micro_batch_size) {
    std::map<int64_t, int64_t> ids;  // by place in the stream
    for (int64_t m = 0; m < 24 / (dp_size * micro_batch_size); ++m)
      for (int64_t r = 0; r < dp_size; ++r) {
        const MicrobatchPlace place = {48, m, r, dp_size, micro_batch_size};
        int64_t position = place.first_sample();
        for (const int64_t id : sample_ids(place, 70)) ids[position++] = id;
      }
    return ids;
  };
  for (const auto& [dp_size, micro_batch_size] : {std::pair{2, 1}, {4, 2}, {3, 4}, {1, 24}})
    EXPECT_EQ(global_batch(dp_size, micro_batch_size), global_batch(1, 1));
}

}  // namespace
}  // namespace sevenfold

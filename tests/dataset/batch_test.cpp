#include "sevenfold/dataset/batch.h"

#include <gmock/gmock.h>

#include <array>
#include <random>

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

// Empty where nothing is reset: the reader takes 0 .. S-1 and 0.
void expect_rows(const std::vector<int64_t>& values, const nlohmann::json& entry, bool is_reset) {
  EXPECT_EQ(!values.empty(), is_reset);
  if (is_reset) {
    EXPECT_EQ(values, entry.get<std::vector<int64_t>>());
  }
}

TEST(Batch, EqualsMegatronsTokensLabelsMasksAndPositions) {
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
    masks.reset_position_ids = entry["reset_position_ids"];
    masks.reset_attention_mask = entry["reset_attention_mask"];
    masks.eod_token_id = entry["eod"].get<int64_t>();
    if (entry["pad"] >= 0) masks.pad_token_id = entry["pad"].get<int64_t>();
    const TokenBatch batch = read_batch(samples, std::array{entry["sample"].get<int64_t>()}, masks);
    EXPECT_EQ(batch.inputs, entry["tokens"].get<std::vector<int64_t>>());
    EXPECT_EQ(batch.labels, entry["labels"].get<std::vector<int64_t>>());
    EXPECT_EQ(batch.loss_mask, entry["loss_mask"].get<std::vector<uint8_t>>());
    expect_rows(batch.positions, entry["position_ids"], masks.reset_position_ids);
    expect_rows(batch.first_key, entry["attention_first_visible"], masks.reset_attention_mask);
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

// The definitions, one query at a time: a token belongs to the document of the last end before it.
TEST(Batch, PositionsAndFirstKeysEqualTheirDefinitionsOnRandomTokens) {
  constexpr size_t kLength = 40;
  std::mt19937 engine(8);
  for (int trial = 0; trial < 200; ++trial) {
    TokenBatch batch;
    batch.seq_length = kLength;
    std::vector<int64_t> tokens(kLength + 1);
    for (int64_t& token : tokens) token = engine() % 5;
    append_sequence(batch, tokens,
                    {.reset_position_ids = true, .reset_attention_mask = true, .eod_token_id = 3});
    for (size_t q = 0; q < kLength; ++q) {
      size_t first = q;
      while (first > 0 && tokens[first - 1] != 3) --first;
      ASSERT_EQ(batch.first_key[q], static_cast<int64_t>(first));
      ASSERT_EQ(batch.positions[q], static_cast<int64_t>(q - first));
      ASSERT_EQ(batch.loss_mask[q], 1);
    }
  }
}

TEST(Batch, BordersAreCountedWithinEachRow) {
  TokenBatch batch;
  batch.seq_length = 4;
  const MaskOptions masks = {
      .reset_position_ids = true, .reset_attention_mask = true, .eod_token_id = 0};
  append_sequence(batch, std::array<int64_t, 5>{1, 0, 2, 3, 0}, masks);
  append_sequence(batch, std::array<int64_t, 5>{0, 0, 4, 0, 0}, masks);
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 0, 1, 0, 0, 0, 1));
  EXPECT_THAT(batch.first_key, ElementsAre(0, 0, 2, 2, 0, 1, 2, 2));
}

TEST(Batch, LeavesPaddingUntrainedAndReadsItAsZero) {
  TokenBatch batch;
  batch.seq_length = 4;
  append_sequence(batch, std::array<int64_t, 5>{5, 9, 5, kPaddingTokenId, kPaddingTokenId},
                  {.pad_token_id = 9});
  EXPECT_THAT(batch.inputs, ElementsAre(5, 0, 5, 0));
  EXPECT_THAT(batch.labels, ElementsAre(0, 5, 0, 0));
  EXPECT_THAT(batch.loss_mask, ElementsAre(0, 1, 0, 0));
}

}  // namespace
}  // namespace sevenfold

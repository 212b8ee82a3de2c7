#include "sevenfold/dataset/order/sample_index.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

SampleIndex index_of(const std::vector<int64_t>& lengths, const SampleIndexOptions& options) {
  return build_sample_index(
      "test", [&](int64_t sequence) { return lengths[static_cast<size_t>(sequence)]; },
      {0, static_cast<int64_t>(lengths.size())}, options);
}

// gmock wants a container.
std::vector<SampleStart> starts_of(const SampleIndex& index) {
  return {index.starts.begin(), index.starts.end()};
}

const std::vector<int64_t> kD2Lengths = {5, 0, 3, 0, 0, 7, 1};

void expect_golden(const nlohmann::json& entry) {
  SCOPED_TRACE(entry.value("which", "") + " of " + entry["dataset"].dump() + " split " +
               entry["split"].dump() + " samples " + entry["num_samples"].dump() + " seed " +
               entry["seed"].dump());
  const testing::TemporaryDirectory directory;
  const SampleIndex index = testing::golden_case(directory, entry).build();
  EXPECT_EQ(index.num_epochs, entry["epochs"].get<int64_t>());
  EXPECT_EQ(index.separate_final_epoch, entry["separate_final_epoch"].get<bool>());
  EXPECT_EQ(index.num_samples(), entry["shuffle_total"].get<int64_t>());
  testing::expect_array(index.document_index, entry["document_index"]);
  testing::expect_array(index.shuffle_index, entry["shuffle_index"]);
  if (!entry.contains("sample_index")) return;
  EXPECT_EQ(index.tokens_per_epoch, entry["tokens_per_epoch"].get<int64_t>());
  EXPECT_EQ(index.starts.size(), entry["sample_index"]["rows"].get<size_t>());
  const auto& starts = entry["sample_index"];
  testing::expect_array(testing::flatten(index.starts), starts);
  for (size_t i = 0; i < 5 && i < index.starts.size(); ++i) {
    const auto first = starts["first5"].at(i).get<std::vector<int64_t>>();
    EXPECT_EQ(index.starts[i], (SampleStart{first[0], first[1]}));
  }
}

TEST(SampleIndex, EqualsMegatronsForEverySplitSizeAndSeed) {
  for (const auto& entry : testing::megatron_golden()["gpt"]) expect_golden(entry);
}

TEST(SampleIndex, EqualsMegatronsWithPartialSamplesOddDataAndNoExtraToken) {
  for (const auto& entry : testing::megatron_golden()["gpt_variants"])
    if (!entry.contains("error")) expect_golden(entry);
}

TEST(SampleIndex, SeparatesTheFinalEpochWhereMegatronDoes) {
  for (const auto& entry : testing::megatron_golden()["final_epoch_sweep"]) expect_golden(entry);
}

// Megatron stops with an assertion here; the last token that is there is the right end.
TEST(SampleIndex, EndsAtTheLastTokenWhenTheLastDocumentIsEmpty) {
  int num_cases = 0;
  for (const auto& entry : testing::megatron_golden()["gpt_variants"]) {
    if (!entry.contains("error")) continue;
    ++num_cases;
    const testing::TemporaryDirectory directory;
    const auto golden = testing::golden_case(directory, entry);
    const SampleIndex index = golden.build();
    for (const SampleStart& start : index.starts) {
      const int64_t document = index.document_index[static_cast<size_t>(start.position)];
      EXPECT_GE(start.offset, 0);
      EXPECT_LE(start.offset, golden.data->sequence_length(document));
    }
  }
  EXPECT_EQ(num_cases, 3);

  const SampleIndex index =
      index_of({6, 0}, {.seq_length = 4, .shuffle = false, .drop_last = false});
  EXPECT_THAT(starts_of(index),
              ElementsAre(SampleStart{0, 0}, SampleStart{0, 4}, SampleStart{0, 5}));
}

TEST(SampleIndex, PassesOverEmptyDocuments) {
  const SampleIndex whole = index_of(kD2Lengths, {.seq_length = 4, .shuffle = false});
  EXPECT_THAT(starts_of(whole), ElementsAre(SampleStart{0, 0}, SampleStart{0, 4}, SampleStart{5, 0},
                                            SampleStart{5, 4}));
  const SampleIndex partial =
      index_of(kD2Lengths, {.seq_length = 4, .shuffle = false, .drop_last = false});
  ASSERT_EQ(partial.starts.size(), 5U);
  EXPECT_EQ(partial.starts.back(), (SampleStart{6, 0}));
}

TEST(SampleIndex, GoesOnIntoTheNextEpoch) {
  const SampleIndex index =
      index_of(kD2Lengths, {.seq_length = 4, .num_samples = 7, .shuffle = false});
  EXPECT_EQ(index.num_epochs, 2);
  EXPECT_EQ(index.num_samples(), 7);
  EXPECT_THAT(starts_of(index), ElementsAre(SampleStart{0, 0}, SampleStart{0, 4}, SampleStart{5, 0},
                                            SampleStart{5, 4}, SampleStart{7, 0}, SampleStart{7, 4},
                                            SampleStart{12, 0}, SampleStart{12, 4}));
}

TEST(SampleIndex, CountsPartialSamplesInSinglePrecision) {
  const SampleIndex index =
      index_of({16777218}, {.seq_length = 4096, .shuffle = false, .drop_last = false});
  EXPECT_EQ(index.num_samples(), 4096);
}

TEST(SampleIndex, RefusesTooFewTokensInWords) {
  EXPECT_THAT(
      [] {
        index_of({0, 0, 0}, {.seq_length = 4, .num_samples = 8});
      },
      ThrowsMessage<DataError>(HasSubstr("hold 0 tokens")));
  EXPECT_THAT(
      [] {
        index_of({3, 1}, {.seq_length = 4});
      },
      ThrowsMessage<DataError>(HasSubstr("hold 4 tokens, but one sample takes 5")));
  EXPECT_THAT([] { index_of({}, {.seq_length = 4}); },
              ThrowsMessage<DataError>(HasSubstr("hold 0 tokens")));
  EXPECT_NO_THROW(index_of({3, 2}, {.seq_length = 4}));
}

TEST(SampleIndex, RefusesACountThatOverflows) {
  EXPECT_THROW(index_of({100}, {.seq_length = 4096, .num_samples = INT64_MAX / 4}), ConfigError);
  EXPECT_THAT([] { index_of({100}, {.seq_length = 4096, .num_samples = int64_t{1} << 40}); },
              ThrowsMessage<DataError>(HasSubstr("more than an index can list")));
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/dataset/gpt_dataset.h"

#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <thread>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dataset/batch.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;

std::vector<int64_t> read_sample(const SampleSource& source, int64_t sample) {
  std::vector<int64_t> tokens(static_cast<size_t>(source.seq_length() + 1));
  source.read(sample, tokens);
  return tokens;
}

GptDataset unshuffled(const TemporaryDirectory& directory, const std::string& name,
                      int64_t seq_length) {
  const auto data = testing::open_fixture(directory, name);
  return GptDataset(data, {.sequences = data->all_sequences(),
                           .seq_length = seq_length,
                           .vocab_size = 65536,
                           .shuffle = false});
}

void expect_golden_tokens(const nlohmann::json& entry) {
  const TemporaryDirectory directory;
  const auto golden = testing::golden_case(directory, entry);
  SCOPED_TRACE(entry["dataset"].dump() + " samples " + entry["num_samples"].dump() + " of " +
               entry["split"].dump());
  const GptDataset samples(golden.data, {.sequences = golden.sequences,
                                         .seq_length = golden.options.seq_length,
                                         .vocab_size = 65536,
                                         .num_samples = golden.options.num_samples,
                                         .seed = golden.options.seed,
                                         .drop_last = golden.options.drop_last,
                                         .extra_token = golden.options.extra_token});
  EXPECT_EQ(samples.num_samples(), entry["length"].get<int64_t>());
  testing::expect_array(testing::tokens_then_labels(samples, entry["tokens_then_labels_of_first"]),
                        entry["tokens_then_labels"]);
  const TokenBatch first = read_batch(samples, std::array{int64_t{0}}, {});
  EXPECT_EQ(first.inputs, entry["sample0"]["tokens"].get<std::vector<int64_t>>());
  EXPECT_EQ(first.labels, entry["sample0"]["labels"].get<std::vector<int64_t>>());
  EXPECT_EQ(first.loss_mask, entry["sample0"]["loss_mask"].get<std::vector<uint8_t>>());
}

TEST(GptDataset, GivesMegatronsTokens) {
  for (const auto& entry : testing::megatron_golden()["gpt"]) expect_golden_tokens(entry);
  EXPECT_EQ(testing::megatron_golden()["gpt"].size(), 48U);
}

TEST(GptDataset, GivesMegatronsTokensWithPartialSamplesOddDataAndNoExtraToken) {
  for (const auto& entry : testing::megatron_golden()["gpt_variants"])
    if (!entry.contains("error")) expect_golden_tokens(entry);
  EXPECT_EQ(testing::megatron_golden()["gpt_variants"].size(), 20U);
}

TEST(GptDataset, WithoutShuffleIsTheStreamOfDocuments) {
  const TemporaryDirectory directory;
  const GptDataset d1 = unshuffled(directory, "D1", 32);
  std::vector<int64_t> stream;
  for_each_piece(d1.data(), d1.sequences(), [&](int64_t, int64_t, std::span<const int64_t> tokens) {
    stream.insert(stream.end(), tokens.begin(), tokens.end());
  });
  EXPECT_EQ(d1.num_samples(), 70);
  for (int64_t k = 0; k < d1.num_samples(); ++k) {
    const auto first = stream.begin() + k * 32;
    EXPECT_EQ(read_sample(d1, k), std::vector<int64_t>(first, first + 33)) << k;
  }
  EXPECT_EQ(unshuffled(directory, "D3", 32).num_samples(), 8);
  EXPECT_EQ(unshuffled(directory, "D4", 32).num_samples(), 8);
}

TEST(GptDataset, PassesOverEmptyDocuments) {
  const TemporaryDirectory directory;
  const GptDataset d2 = unshuffled(directory, "D2", 4);
  EXPECT_EQ(d2.num_samples(), 3);
  EXPECT_THAT(read_sample(d2, 1), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(read_sample(d2, 2), ElementsAre(9, 10, 11, 12, 13));
}

TEST(GptDataset, KeepsTopIds) {
  const TemporaryDirectory directory;
  EXPECT_THAT(read_sample(unshuffled(directory, "D7", 4), 0),
              ElementsAre(0, 1, 32767, 32768, 65534));
}

TEST(GptDataset, ReadsPast32BitOffsets) {
  const TemporaryDirectory directory;
  testing::write_d5(directory / "d5");
  auto data = std::make_shared<const IndexedDataset>(directory / "d5");
  const GptDataset samples(data, {.sequences = data->all_sequences(),
                                  .seq_length = 100'000'000,
                                  .vocab_size = 100,
                                  .shuffle = false});
  EXPECT_EQ(samples.num_samples(), 12);
  EXPECT_EQ(samples.index().starts.back(), (SampleStart{1, 0}));
  EXPECT_FALSE(samples.validate_tokens());  // 4.8 GB are checked when read
}

TEST(GptDataset, IndexesMoreThan32BitsOfTokens) {
  const TemporaryDirectory directory;
  testing::write_d6(directory / "d6");
  auto data = std::make_shared<const IndexedDataset>(directory / "d6");
  const GptDataset samples(data, {.sequences = data->all_sequences(),
                                  .seq_length = 4096,
                                  .vocab_size = 100,
                                  .shuffle = false});
  EXPECT_EQ(samples.num_samples(), (3'000'000'000 - 1) / 4096);
  EXPECT_EQ(samples.index().starts.back(),
            (SampleStart{2, 4096 * samples.num_samples() - 2'000'000'000}));
}

TEST(GptDataset, ReadsTokensOfFourBytesPast32BitOffsets) {
  const TemporaryDirectory directory;
  testing::write_d5(directory / "d5");
  const GptDataset samples(std::make_shared<const IndexedDataset>(directory / "d5"),
                           {.sequences = {1, 2}, .seq_length = 3, .vocab_size = 100});
  EXPECT_THAT(read_sample(samples, 0), ElementsAre(11, 22, 33, 44));  // from byte 4.8e9 on
}

TEST(GptDataset, ReadsTokensOfTwoBytesPast32BitOffsets) {
  const TemporaryDirectory directory;
  testing::write_d6(directory / "d6");
  std::fstream file(directory / "d6.bin", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(6'000'000'000 - 4);
  file.write("\x07\x00\x09\x00", 4);
  file.close();
  const auto data = std::make_shared<const IndexedDataset>(directory / "d6");
  const GptDataset samples(
      data, {.sequences = {2, 3}, .seq_length = 333'667, .vocab_size = 100, .shuffle = false});
  const std::vector<int64_t> tokens = read_sample(samples, 2996);  // 2997 * 333,667 = 1e9 - 1
  EXPECT_EQ(samples.num_samples(), 2997);
  EXPECT_EQ(tokens[tokens.size() - 2], 7);
  EXPECT_EQ(tokens.back(), 9);
}

// Documents of equal length: whatever their order, sample k starts at token k*S of the epochs.
TEST(GptDataset, ShufflesTwoEpochsOfThreeThousandMillionTokens) {
  constexpr int64_t kDocument = 1'000'000'000;
  constexpr int64_t kSeqLength = 1'000'003;
  const TemporaryDirectory directory;
  testing::write_d6(directory / "d6");
  const auto data = std::make_shared<const IndexedDataset>(directory / "d6");
  const GptDataset samples(data, {.sequences = data->all_sequences(),
                                  .seq_length = kSeqLength,
                                  .vocab_size = 100,
                                  .num_samples = 5000});
  EXPECT_EQ(samples.index().num_epochs, 2);
  EXPECT_EQ(samples.num_samples(), (2 * 3 * kDocument - 1) / kSeqLength);
  const auto starts = samples.index().starts;
  for (size_t k = 0; k < starts.size(); ++k) {
    const int64_t token = static_cast<int64_t>(k) * kSeqLength;
    ASSERT_EQ(starts[k], (SampleStart{token / kDocument, token % kDocument})) << k;
  }
}

TEST(GptDataset, RefusesATokenBeyondTheVocabulary) {
  const TemporaryDirectory directory;
  const auto data = testing::open_fixture(directory, "D7");
  const GptDataset samples(data, {.sequences = {0, 1}, .seq_length = 4, .vocab_size = 32768});
  EXPECT_THAT([&] { samples.validate_tokens(); },
              ThrowsMessage<DataError>(HasSubstr("token id 32768 at position 3")));
  EXPECT_THAT(
      [&] { read_sample(samples, 0); },
      ThrowsMessage<DataError>(HasSubstr("D7.bin: document 0 holds token id 32768 at position 3")));
}

TEST(GptDataset, RefusesTooLittleText) {
  const TemporaryDirectory directory;
  EXPECT_THAT([&] { unshuffled(directory, "D7", 6); },
              ThrowsMessage<DataError>(HasSubstr("hold 6 tokens, but one sample takes 7")));
}

TEST(GptDataset, IsReadByManyThreadsAtOnce) {
  const TemporaryDirectory directory;
  const auto data = testing::open_fixture(directory, "D1");
  const GptDataset samples(
      data, {.sequences = data->all_sequences(), .seq_length = 32, .vocab_size = 101});
  std::vector<std::vector<int64_t>> expected;
  for (int64_t k = 0; k < samples.num_samples(); ++k) expected.push_back(read_sample(samples, k));
  std::vector<int64_t> num_equal(4);
  {
    std::vector<std::jthread> threads;
    for (int64_t& count : num_equal)
      threads.emplace_back([&] {
        for (int64_t k = 0; k < samples.num_samples(); ++k)
          count += read_sample(samples, k) == expected[static_cast<size_t>(k)] ? 1 : 0;
      });
  }
  EXPECT_THAT(num_equal, ::testing::Each(samples.num_samples()));
}

}  // namespace
}  // namespace sevenfold

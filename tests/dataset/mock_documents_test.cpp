#include "sevenfold/dataset/mock_documents.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"
#include "sevenfold/dataset/data_sources.h"

namespace sevenfold {
namespace {

const nlohmann::json& golden() {
  return testing::megatron_golden()["mock"];
}

void expect_part(const SampleSource& part, const nlohmann::json& entry) {
  const auto& samples = dynamic_cast<const GptDataset&>(part);
  const auto documents = entry["documents"].get<std::vector<int64_t>>();
  EXPECT_EQ(samples.sequences(), (SequenceRange{documents[0], documents[1]}));
  EXPECT_EQ(samples.num_samples(), entry["length"].get<int64_t>());
  const SampleIndex& index = samples.index();
  EXPECT_EQ(index.tokens_per_epoch, entry["tokens_per_epoch"].get<int64_t>());
  testing::expect_array(index.document_index, entry["document_index"]);
  testing::expect_array(index.shuffle_index, entry["shuffle_index"]);
  testing::expect_array(testing::flatten(index.starts), entry["sample_index"]);
  testing::expect_array(testing::tokens_then_labels(part, entry["tokens_then_labels_of_first"]),
                        entry["tokens_then_labels"]);
}

TEST(MockDocuments, HaveMegatronsLengths) {
  const MockDocuments documents(101, 0);
  std::vector<int64_t> lengths;
  for (int64_t d = 0; d < documents.num_sequences(); ++d)
    lengths.push_back(documents.sequence_length(d));
  testing::expect_array(lengths, golden()["lengths"]);
}

TEST(MockDocuments, GiveMegatronsSamplesInAllParts) {
  DataConfig config;
  config.mock_data = true;
  config.split = "969,30,1";  // does not count
  config.eod_token_id = golden()["eod"].get<int64_t>();
  EXPECT_EQ(golden()["split"], MockDocuments::kSplit);
  const auto sizes = golden()["sizes"].get<std::vector<int64_t>>();
  const DataSources sources = open_data(config, {.seq_length = golden()["seq_length"],
                                                 .vocab_size = golden()["vocab"],
                                                 .seed = golden()["seed"],
                                                 .train_samples = sizes[0],
                                                 .valid_samples = sizes[1],
                                                 .test_samples = sizes[2]});
  const auto& parts = golden()["splits"];
  ASSERT_EQ(parts.size(), 3U);
  expect_part(*sources.train, parts[0]);
  expect_part(*sources.valid, parts[1]);
  expect_part(*sources.test, parts[2]);
  for (const auto& part : parts) EXPECT_TRUE(part.contains("tokens_then_labels"));
}

TEST(MockDocuments, CountUpAndEndWithEndOfDocument) {
  const MockDocuments documents(7, 6);
  int64_t document = 0;
  while (documents.sequence_length(document) < 12) ++document;
  const int64_t length = documents.sequence_length(document);
  std::vector<int64_t> tokens(static_cast<size_t>(length));
  documents.read(document, 0, tokens);
  for (int64_t i = 0; i + 1 < length; ++i) ASSERT_EQ(tokens[static_cast<size_t>(i)], (i + 1) % 7);
  EXPECT_EQ(tokens.back(), 6);
  std::vector<int64_t> piece(5);
  documents.read(document, length - 5, piece);
  EXPECT_EQ(piece, std::vector<int64_t>(tokens.end() - 5, tokens.end()));
}

}  // namespace
}  // namespace sevenfold

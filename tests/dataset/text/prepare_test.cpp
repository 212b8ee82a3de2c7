#include "sevenfold/dataset/text/prepare.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/indexed/indexed_dataset.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;
using testing::write_text;

PrepareConfig config_of(const TemporaryDirectory& directory, const std::string& glob) {
  return {.inputs = {directory / glob}, .output = directory / "out/text"};
}

TEST(Prepare, MakesADocumentOfEveryFile) {
  const TemporaryDirectory directory;
  write_text(directory / "1.txt", "Hi\n");
  write_text(directory / "2.txt", "");
  write_text(directory / "3.txt", "\xc3\xa9");
  const PrepareReport report = prepare_dataset(config_of(directory, "*.txt"));
  EXPECT_EQ(report.num_documents, 3);
  EXPECT_EQ(report.num_tokens, 8);
  EXPECT_EQ(report.input_bytes, 5);
  EXPECT_EQ(report.vocab_size, 257);
  EXPECT_EQ(report.eod_token_id, 256);

  const IndexedDataset data(directory / "out/text");
  EXPECT_EQ(data.element_type(), ElementType::kU16);
  std::vector<int64_t> stream;
  for_each_piece(data, data.all_sequences(),
                 [&](int64_t, int64_t, std::span<const int64_t> tokens) {
                   stream.insert(stream.end(), tokens.begin(), tokens.end());
                 });
  EXPECT_THAT(stream, ElementsAre('H', 'i', '\n', 256, 256, 0xc3, 0xa9, 256));
}

TEST(Prepare, ReportsBytesAsTheyGo) {
  const TemporaryDirectory directory;
  write_text(directory / "1.txt", std::string(3 << 20, 'x'));
  write_text(directory / "2.txt", "y");
  std::vector<int64_t> done;
  prepare_dataset(config_of(directory, "*.txt"), [&](int64_t bytes, int64_t total) {
    done.push_back(bytes);
    EXPECT_EQ(total, (3 << 20) + 1);
  });
  EXPECT_GE(done.size(), 4U);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), (3 << 20) + 1);
}

TEST(Prepare, GivesTheSameBytesAgain) {
  const TemporaryDirectory directory;
  write_text(directory / "1.txt", "one");
  write_text(directory / "2.txt", "two");
  prepare_dataset(config_of(directory, "*.txt"));
  const std::string bin = testing::read_text(directory / "out/text.bin");
  const std::string idx = testing::read_text(directory / "out/text.idx");
  prepare_dataset(config_of(directory, "*.txt"));
  EXPECT_EQ(testing::read_text(directory / "out/text.bin"), bin);
  EXPECT_EQ(testing::read_text(directory / "out/text.idx"), idx);
}

TEST(Prepare, RefusesWhatItCannotDoAndLeavesNothing) {
  const TemporaryDirectory directory;
  write_text(directory / "1.txt", "one");
  PrepareConfig config = config_of(directory, "*.text");
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<ConfigError>(HasSubstr("no file matches")));
  config = config_of(directory, "*.txt");
  config.tokenizer = "tokenizer.json";
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<ConfigError>(HasSubstr("only the byte tokenizer")));
  EXPECT_FALSE(std::filesystem::exists(directory / "out"));
  config.tokenizer = "byte";
  config.output = directory / "1.txt/out";
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot make the output directory")));
  config.output = (directory / "out") + "/";
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<ConfigError>(HasSubstr("names no file")));
  EXPECT_FALSE(std::filesystem::exists(directory / "out"));
}

}  // namespace
}  // namespace sevenfold

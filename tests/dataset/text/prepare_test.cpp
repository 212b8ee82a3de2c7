#include "sevenfold/dataset/text/prepare.h"

#include <gmock/gmock.h>

#include <zlib.h>

#include <algorithm>
#include <sstream>

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
  PrepareHooks hooks;
  hooks.progress = [&](int64_t bytes, int64_t total) {
    done.push_back(bytes);
    EXPECT_EQ(total, (3 << 20) + 1);
  };
  prepare_dataset(config_of(directory, "*.txt"), hooks);
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
  config.tokenizer = "word";
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<ConfigError>(HasSubstr("tokenizer=word: no tokenizer of that kind")));
  config.tokenizer = directory / "none.json";
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<ConfigError>(HasSubstr("none.json: No such file")));
  EXPECT_FALSE(std::filesystem::exists(directory / "out"));
  config.tokenizer = "byte";
  config.output = directory / "1.txt/out";
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot make the output directory")));
  for (const char* folder : {"out/", "out/.", "out/.."}) {
    config.output = directory / folder;
    EXPECT_THAT([&] { prepare_dataset(config); },
                ThrowsMessage<ConfigError>(HasSubstr("names no file, only a folder")));
  }
  for (const char* output : {".", "..", ""}) {
    config.output = output;
    EXPECT_THAT([&] { prepare_dataset(config); },
                ThrowsMessage<ConfigError>(HasSubstr("output \"" + std::string(output) + "\"")));
  }
  EXPECT_FALSE(std::filesystem::exists(directory / "out"));
}

TEST(Prepare, LeavesNothingBehindWhenItIsStopped) {
  const TemporaryDirectory directory;
  write_text(directory / "1.txt", "one");
  write_text(directory / "2.txt", "two");
  bool has_partial_files = false;
  PrepareHooks hooks;
  hooks.stop_requested = [&] {
    has_partial_files = !std::filesystem::is_empty(directory / "out");
    return true;
  };
  EXPECT_THAT([&] { prepare_dataset(config_of(directory, "*.txt"), hooks); },
              ThrowsMessage<Error>("dataset: tokenizing " + directory / "out/text" +
                                   " was stopped by a signal; nothing was kept"));
  EXPECT_TRUE(has_partial_files);
  EXPECT_TRUE(std::filesystem::is_empty(directory / "out"));
  hooks.stop_requested = [] { return false; };
  EXPECT_EQ(prepare_dataset(config_of(directory, "*.txt"), hooks).num_documents, 2);
}

// Megatron's element type: u16 below 65500 ids. The tokenizer's file decides, not the ids in use.
TEST(Prepare, TakesTheElementTypeOfTheVocabulary) {
  const TemporaryDirectory directory;
  write_text(directory / "1.txt", "one");
  const std::string golden = std::string(SEVENFOLD_SOURCE_DIR) + "/tests/golden/tokenizers/";
  std::string json = testing::read_text(golden + "gpt2.json");
  PrepareConfig config = config_of(directory, "*.txt");
  config.tokenizer = golden + "gpt2.json";
  EXPECT_EQ(prepare_dataset(config).vocab_size, 1501);
  EXPECT_EQ(IndexedDataset(config.output).element_type(), ElementType::kU16);
  const size_t vocab = json.find("\"vocab\":{") + 9;
  json.insert(vocab, "\"far away\":65500,");
  const size_t eod = json.find("\"id\":1500");
  json.replace(eod, 9, "\"id\":1501");
  write_text(directory / "tokenizer.json", json);
  config.tokenizer = directory.path().string();
  EXPECT_EQ(prepare_dataset(config).vocab_size, 65501);
  EXPECT_EQ(IndexedDataset(config.output).element_type(), ElementType::kI32);
}

// The lines of the tokenizers' goldens as JSON lines and as text files, with 1, 2 and 5 threads.
TEST(Prepare, GivesTheSameBytesWithAnyNumberOfWorkers) {
  const TemporaryDirectory directory;
  const std::string golden = std::string(SEVENFOLD_SOURCE_DIR) + "/tests/golden/tokenizers/";
  std::istringstream lines(testing::read_text(golden + "lines.jsonl"));
  std::string json;
  std::string text;
  for (std::string line; std::getline(lines, line); text += line)
    json += "{\"text\": " + line + "}\n";
  for (int i = 0; i < 4; ++i) json += json.size() < (4 << 20) ? json : "";
  write_text(directory / "a.jsonl", json);
  for (int i = 0; i < 20; ++i)
    write_text(directory / (std::to_string(i) + ".txt"), text.substr(i * 999));
  PrepareConfig config = config_of(directory, "*");
  config.tokenizer = golden + "llama3.json";
  std::vector<std::string> made;
  for (const int64_t workers : {1, 2, 5}) {
    config.workers = workers;
    const PrepareReport report = prepare_dataset(config);
    EXPECT_EQ(report.num_workers, workers);
    EXPECT_EQ(report.num_documents % 2000, 20);
    made.push_back(testing::read_text(config.output + ".bin") +
                   testing::read_text(config.output + ".idx"));
    std::filesystem::remove_all(directory / "out");
  }
  EXPECT_EQ(made[1], made[0]);
  EXPECT_EQ(made[2], made[0]);
}

TEST(Prepare, StopsAtTheFirstDocumentThatCannotBeReadOrLeavesAllSuchOut) {
  const TemporaryDirectory directory;
  write_text(directory / "1.jsonl", "{\"text\":\"a\"}\n{\"text\":2}\n");
  write_text(directory / "2.jsonl", "{\"text\":\"b\"}\nnull\n");
  PrepareConfig config = config_of(directory, "*.jsonl");
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<DataError>(
                  ::testing::AllOf(HasSubstr("1.jsonl:2: \"text\" is a JSON number, no string"),
                                   HasSubstr("--skip-invalid"))));
  EXPECT_TRUE(std::filesystem::is_empty(directory / "out"));
  config.skip_invalid = true;
  const PrepareReport report = prepare_dataset(config);
  EXPECT_EQ(report.num_documents, 2);
  EXPECT_EQ(report.num_invalid, 2);
  EXPECT_THAT(report.first_invalid, HasSubstr("1.jsonl:2"));
  config.json_key = "body";
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<DataError>(HasSubstr("hold no document (4 were left out)")));
}

TEST(Prepare, LeavesTheEndOfDocumentOutWhenAsked) {
  const TemporaryDirectory directory;
  write_text(directory / "1.txt", "ab\ncd\n");
  PrepareConfig config = config_of(directory, "*.txt");
  config.append_eod = false;
  config.format = "lines";
  const PrepareReport report = prepare_dataset(config);
  EXPECT_EQ(report.num_documents, 2);
  EXPECT_EQ(report.num_tokens, 4);
  EXPECT_FALSE(report.has_eods);
}

TEST(Prepare, ReadsGzipAndNoticesATruncatedFile) {
  const TemporaryDirectory directory;
  const std::string text = "one\ntwo\n";
  write_text(directory / "plain.txt", text);
  {
    gzFile file = ::gzopen((directory / "a.txt.gz").c_str(), "wb");
    ASSERT_EQ(::gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
              static_cast<int>(text.size()));
    ::gzclose(file);
  }
  PrepareConfig config = config_of(directory, "plain.txt");
  prepare_dataset(config);
  const std::string expected = testing::read_text(config.output + ".bin");
  config.inputs = {directory / "a.txt.gz"};
  prepare_dataset(config);
  EXPECT_EQ(testing::read_text(config.output + ".bin"), expected);

  const std::string compressed = testing::read_text(directory / "a.txt.gz");
  write_text(directory / "b.txt.gz", compressed.substr(0, compressed.size() - 6));
  config.inputs = {directory / "b.txt.gz"};
  EXPECT_THAT([&] { prepare_dataset(config); },
              ThrowsMessage<DataError>(HasSubstr("b.txt.gz is damaged")));
}

}  // namespace
}  // namespace sevenfold

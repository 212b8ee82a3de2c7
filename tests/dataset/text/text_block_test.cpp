#include "sevenfold/dataset/text/text_block.h"

#include <gmock/gmock.h>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/byte_tokenizer.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;
using testing::write_text;

EncodedBlock encode(const std::string& text, TextFormat format) {
  const TextBlock block{.path = "f", .format = format, .text = text, .first_line = 10};
  return encode_block(block, ByteTokenizer(), {.json_key = "text", .eod_token_id = 256});
}

std::string only_problem(const std::string& line) {
  const EncodedBlock block = encode(line, TextFormat::kJsonl);
  EXPECT_TRUE(block.ids.empty());
  return block.invalid.size() == 1 ? block.invalid[0] : "not one problem";
}

TEST(TextFormat, IsToldByTheNameOfTheFile) {
  EXPECT_EQ(text_format("auto", "a/b.jsonl"), TextFormat::kJsonl);
  EXPECT_EQ(text_format("auto", "b.json.gz"), TextFormat::kJsonl);
  EXPECT_EQ(text_format("auto", "b.ndjson"), TextFormat::kJsonl);
  EXPECT_EQ(text_format("auto", "json"), TextFormat::kText);
  EXPECT_EQ(text_format("auto", "b.txt.gz"), TextFormat::kText);
  EXPECT_EQ(text_format("text", "b.json"), TextFormat::kText);
  EXPECT_EQ(text_format("lines", "b.json"), TextFormat::kLines);
  EXPECT_THAT([] { text_format("csv", "b.csv"); },
              ThrowsMessage<ConfigError>(HasSubstr("format=csv is none of auto, text")));
}

TEST(EncodeBlock, MakesADocumentOfEveryJsonLine) {
  const EncodedBlock block =
      encode("{\"text\":\"a\\u00e9\"}\n \r\n{\"n\":[1],\"text\":\"\"}\r\n{\"text\":\"b\"}",
             TextFormat::kJsonl);
  EXPECT_THAT(block.ids, ElementsAre('a', 0xc3, 0xa9, 256, 256, 'b', 256));
  EXPECT_THAT(block.document_ends, ElementsAre(4, 5, 7));
  EXPECT_TRUE(block.invalid.empty());
}

TEST(EncodeBlock, NamesTheLineAndWhatIsWrongWithIt) {
  EXPECT_THAT(only_problem("{\"text\": \"a\""), HasSubstr("f:10: malformed JSON at byte 13"));
  EXPECT_THAT(only_problem("\n{\"text\": \"\xff\"}"),
              ::testing::AllOf(HasSubstr("f:11: malformed JSON"), HasSubstr("UTF-8")));
  EXPECT_THAT(only_problem("{\"text\": \"\\ud800\"}"), HasSubstr("malformed JSON"));
  EXPECT_EQ(only_problem("{\"text\": \"a\", \"n\": 1e999}"),
            "f:10: malformed JSON: number overflow parsing '1e999'");
  EXPECT_EQ(only_problem("{\"body\": 1}"), "f:10: the object has no key \"text\"");
  EXPECT_EQ(only_problem("{\"text\": 1}"), "f:10: \"text\" is a JSON number, no string");
  EXPECT_EQ(only_problem("[1]"), "f:10: the line is a JSON array, no object");
}

TEST(EncodeBlock, KeepsGoodLinesBesideBadOnes) {
  const EncodedBlock block =
      encode("{\"text\":\"a\"}\n{\n{\"text\":\"b\"}\n3\n", TextFormat::kJsonl);
  EXPECT_THAT(block.ids, ElementsAre('a', 256, 'b', 256));
  EXPECT_THAT(block.document_ends, ElementsAre(2, 4));
  EXPECT_THAT(block.invalid, ElementsAre(HasSubstr("f:11: "), HasSubstr("f:13: ")));
}

TEST(EncodeBlock, MakesADocumentOfEveryLineThatIsNotBlank) {
  const EncodedBlock block = encode("a \r\n\n \t\nb", TextFormat::kLines);
  EXPECT_THAT(block.ids, ElementsAre('a', ' ', 256, 'b', 256));
}

TEST(EncodeBlock, NamesTheByteThatIsNotUtf8WhereTheTokenizerNeedsIt) {
  const auto tokenizer =
      open_tokenizer(std::string(SEVENFOLD_SOURCE_DIR) + "/tests/golden/tokenizers/gpt2.json");
  const TextBlock block{.path = "f", .text = "ab\xff"};
  EXPECT_THAT(encode_block(block, *tokenizer, {}).invalid, ElementsAre("f: not UTF-8 at byte 2"));
  EXPECT_TRUE(encode_block(block, ByteTokenizer(), {}).invalid.empty());
}

TEST(BlockReader, CutsBetweenLinesAndNumbersThem) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "line " + std::to_string(i) + "\n";
  text += std::string(3 << 20, 'x') + "\nlast, without a break";
  write_text(directory / "a.txt", text);
  BlockReader reader({{directory / "a.txt", static_cast<int64_t>(text.size())}}, "lines", true);
  std::string read;
  int64_t line = 1;
  int num_blocks = 0;
  while (const auto block = reader.next()) {
    ++num_blocks;
    EXPECT_EQ(block->first_line, line);
    line += std::count(block->text.begin(), block->text.end(), '\n');
    read += block->text;
    EXPECT_TRUE(block->text.ends_with('\n') || read.size() == text.size());
  }
  EXPECT_EQ(read, text);
  EXPECT_GE(num_blocks, 4);
}

TEST(BlockReader, CutsATextOnlyWhereItMayBeCut) {
  const TemporaryDirectory directory;
  write_text(directory / "a.txt", std::string(3 << 20, 'x'));
  write_text(directory / "b.txt", "");
  const std::vector<InputFile> files = {{directory / "a.txt", 3 << 20}, {directory / "b.txt", 0}};
  for (const bool may_cut : {false, true}) {
    BlockReader reader(files, "auto", may_cut);
    int64_t num_bytes = 0;
    std::vector<bool> ends;
    while (const auto block = reader.next()) {
      num_bytes += static_cast<int64_t>(block->text.size());
      ends.push_back(block->ends_document);
      EXPECT_LE(num_bytes, block->num_bytes_done);
    }
    EXPECT_EQ(num_bytes, 3 << 20);
    EXPECT_EQ(std::count(ends.begin(), ends.end(), true), 2);
    EXPECT_EQ(ends.size() > 2, may_cut);
  }
}

}  // namespace
}  // namespace sevenfold

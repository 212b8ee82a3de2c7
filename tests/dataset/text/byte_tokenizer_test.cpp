#include "sevenfold/dataset/text/byte_tokenizer.h"

#include <gmock/gmock.h>

#include <vector>

namespace sevenfold {
namespace {

TEST(ByteTokenizer, ShowsEveryTokenInPrintableAscii) {
  EXPECT_EQ(escape_tokens(
                std::vector<int64_t>{'a', ' ', '\n', '\t', '\r', '\\', 0, 27, 200, 256, 300, -1}),
            "a \\n\\t\\r\\\\\\x00\\x1b\\xc8<eod><300><-1>");
}

TEST(ByteTokenizer, EncodesAnyBytesAndDecodesThemAgain) {
  const auto tokenizer = open_tokenizer("byte");
  std::vector<int64_t> ids = {7};
  tokenizer->encode("a\xff\xc3\xa9", ids);
  EXPECT_THAT(ids, ::testing::ElementsAre(7, 'a', 0xff, 0xc3, 0xa9));
  EXPECT_EQ(tokenizer->decode(ids), "\aa\xff\xc3\xa9");
  EXPECT_EQ(tokenizer->decode(std::vector<int64_t>{'x', 256, 300}), "x<eod><300>");
  EXPECT_EQ(tokenizer->vocab_size(), 257);
  EXPECT_EQ(tokenizer->eod_token_id(), 256);
}

}  // namespace
}  // namespace sevenfold

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

}  // namespace
}  // namespace sevenfold

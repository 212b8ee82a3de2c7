#include "sevenfold/dataset/text/utf8.h"

#include <gmock/gmock.h>

namespace sevenfold {
namespace {

TEST(Utf8, FindsTheFirstByteThatIsNone) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("plain text that is longer than a word"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xef\xbf\xbf "
                              "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"),
            std::nullopt);
  EXPECT_EQ(find_invalid_utf8("12345678\xff"), 8U);
  EXPECT_EQ(find_invalid_utf8("a\xc0\x80"), 1U);              // overlong
  EXPECT_EQ(find_invalid_utf8("\xe0\x9f\xbf"), 0U);           // overlong
  EXPECT_EQ(find_invalid_utf8("\xf0\x8f\xbf\xbf"), 0U);       // overlong
  EXPECT_EQ(find_invalid_utf8("ab\xed\xa0\x80"), 2U);         // a surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);       // past U+10FFFF
  EXPECT_EQ(find_invalid_utf8("a\x80"), 1U);                  // a lone second byte
  EXPECT_EQ(find_invalid_utf8("abc\xe2\x82"), 3U);            // cut short
  EXPECT_EQ(find_invalid_utf8("\xe2\x82\xac\xe2\x82x"), 3U);  // broken off
}

// What Python's bytes.decode("utf-8", "replace") gives.
TEST(Utf8, ReplacesEveryMaximalBrokenPart) {
  EXPECT_EQ(replace_invalid_utf8("a\xe2\x82\xac"), "a\xe2\x82\xac");
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(replace_invalid_utf8("\xf0\x9f\x98x"), mark + "x");
  EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80"), mark + mark + mark);
  EXPECT_EQ(replace_invalid_utf8("\xf1\x80\x80\xe1\x80\xc2"
                                 "b\x80"),
            mark + mark + mark + "b" + mark);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/dataset/text/bpe/normal_form.h"

#include <gmock/gmock.h>

#include <vector>

namespace sevenfold {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> all_forms(const std::string& text) {
  return {normalize(text, NormalForm::kNfc), normalize(text, NormalForm::kNfd),
          normalize(text, NormalForm::kNfkc), normalize(text, NormalForm::kNfkd)};
}

// Expected values are those of Hugging Face's tokenizers 0.23.3.
TEST(NormalForm, ComposesAndDecomposes) {
  EXPECT_THAT(all_forms("e\xcc\x81\xef\xac\x81\xe2\x84\xab"),
              ElementsAre("\xc3\xa9\xef\xac\x81\xc3\x85", "e\xcc\x81\xef\xac\x81\x41\xcc\x8a",
                          "\xc3\xa9"
                          "fi\xc3\x85",
                          "e\xcc\x81"
                          "fiA\xcc\x8a"));
  const std::string jamo = "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8";
  const std::string gag = "\xea\xb0\x81";
  EXPECT_THAT(all_forms(gag + jamo), ElementsAre(gag + gag, jamo + jamo, gag + gag, jamo + jamo));
  EXPECT_EQ(normalize("q\xcc\x87\xcc\xa3", NormalForm::kNfc), "q\xcc\xa3\xcc\x87");
  EXPECT_EQ(normalize("", NormalForm::kNfkd), "");
}

// Marks, compositions and compatibility forms of Unicode 10 and later stay as the library, whose
// tables are older, leaves them.
TEST(NormalForm, LeavesCharactersYoungerThanUnicode9WhereTheyAre) {
  const std::string nko_mark = "\xdf\xbd";  // U+07FD, Unicode 11, a mark below
  EXPECT_THAT(all_forms("a\xcc\x81" + nko_mark + "\xcc\x81\xcc\xa3"),
              ElementsAre("\xc3\xa1" + nko_mark + "\xcc\xa3\xcc\x81",
                          "a\xcc\x81" + nko_mark + "\xcc\xa3\xcc\x81",
                          "\xc3\xa1" + nko_mark + "\xcc\xa3\xcc\x81",
                          "a\xcc\x81" + nko_mark + "\xcc\xa3\xcc\x81"));
  for (const std::string unchanged : {"\xe3\x8b\xbf", "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0"})
    EXPECT_THAT(all_forms(unchanged), ElementsAre(unchanged, unchanged, unchanged, unchanged));
}

}  // namespace
}  // namespace sevenfold

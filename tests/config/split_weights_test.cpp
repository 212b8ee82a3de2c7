#include "sevenfold/config/split_weights.h"

#include <gmock/gmock.h>

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SplitWeights, TakeAnySeparator) {
  for (const char* split : {"1,3,0", "1/3", " 1 and 3 ", "1-3", "1 - 3 - 0", "[1.0, 3.0]", "1:3"}) {
    EXPECT_THAT(read_split(split).weights, ElementsAre(1.0, 3.0, 0.0)) << split;
    EXPECT_THAT(read_split(split).fault, IsEmpty()) << split;
  }
}

TEST(SplitWeights, RefuseSignsExponentsAndNumbersThatAreNotFinite) {
  for (const std::string& split :
       {std::string("1e999,1"), std::string("1e3"), std::string("-1, 2"),
        std::string("969, -30, 1"), std::string("+1,2"), std::string(400, '9') + ",1",
        std::string(309, '1') + "," + std::string(309, '9'), std::string("inf"), std::string("nan"),
        std::string(""), std::string(".")})
    EXPECT_THAT(read_split(split).fault, HasSubstr("write three weights like 969,30,1")) << split;
}

TEST(SplitWeights, SayWhatIsWrong) {
  EXPECT_THAT(read_split("1,2,3,4").fault, HasSubstr("more than three numbers"));
  EXPECT_THAT(read_split("1.2.3").fault, HasSubstr("\"1.2.3\" is no number"));
  EXPECT_THAT(read_split("0,0,0").fault, HasSubstr("the weights sum to 0"));
  EXPECT_THAT(read_split("-1,2").fault, HasSubstr("a plain decimal number of at least 0"));
}

}  // namespace
}  // namespace sevenfold

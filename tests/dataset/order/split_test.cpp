#include "sevenfold/dataset/order/split.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Split, CutsWhereMegatronCuts) {
  for (const auto& entry : testing::megatron_golden()["split"]) {
    SCOPED_TRACE(entry["split"].dump() + " of " + entry["n"].dump());
    const auto ranges = split_sequences(entry["split"], entry["n"]);
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto& expected = entry["ranges"][i];
      ASSERT_EQ(ranges[i].has_value(), !expected.is_null());
      if (ranges[i]) {
        EXPECT_EQ(*ranges[i],
                  (SequenceRange{expected[0].get<int64_t>(), expected[1].get<int64_t>()}));
      }
    }
  }
}

TEST(Split, TakesAnySeparator) {
  const auto plain = split_sequences("1,3,0", 100);
  for (const char* split : {"1/3", " 1 and 3 ", "1-3", "1 - 3 - 0", "[1.0, 3.0]", "1:3"})
    EXPECT_EQ(split_sequences(split, 100), plain) << split;
}

TEST(Split, RefusesSignsExponentsAndNumbersThatAreNotFinite) {
  for (const std::string& split :
       {std::string("1e999,1"), std::string("1e3"), std::string("-1, 2"),
        std::string("969, -30, 1"), std::string("+1,2"), std::string(400, '9') + ",1",
        std::string(309, '1') + "," + std::string(309, '9'), std::string("inf"), std::string("nan"),
        std::string(""), std::string(".")})
    EXPECT_THAT([&] { split_sequences(split, 10); },
                ThrowsMessage<ConfigError>(HasSubstr("split=\"" + split + "\"")))
        << split;
}

TEST(Split, RefusesStringsWithoutThreeWeights) {
  EXPECT_THAT([] { split_sequences("1,2,3,4", 10); },
              ThrowsMessage<ConfigError>(HasSubstr("more than three numbers")));
  EXPECT_THAT([] { split_sequences("1.2.3", 10); }, ThrowsMessage<ConfigError>(HasSubstr("1.2.3")));
  EXPECT_THAT([] { split_sequences("0,0,0", 10); },
              ThrowsMessage<ConfigError>(HasSubstr("sums to 0")));
  EXPECT_THAT([] { split_sequences("all", 10); },
              ThrowsMessage<ConfigError>(HasSubstr("969,30,1")));
}

TEST(Split, NamesAPartThatIsEmptyOrAbsent) {
  const testing::TemporaryDirectory directory;
  const auto data = testing::open_fixture(directory, "D1");
  EXPECT_THAT([&] { require_split("969,30,1", *data, Split::kTest); },
              ThrowsMessage<ConfigError>(HasSubstr("so its test part is empty")));
  EXPECT_THAT([&] { require_split("100,0,0", *data, Split::kValid); },
              ThrowsMessage<ConfigError>(HasSubstr("no validation part")));
}

// The entries of the golden file that Megatron does not survive: it hangs when a size is asked and
// aborts when none is.
TEST(Split, RefusesThePartThatMegatronHangsOrAbortsOn) {
  const auto& edge = testing::megatron_golden()["edge"];
  ASSERT_EQ(edge.size(), 2U);
  EXPECT_EQ(edge["empty split, num_samples=8"]["returncode"], "did not end in 6 s");
  EXPECT_EQ(edge["empty split, num_samples=None"]["returncode"], -6);
  const testing::TemporaryDirectory directory;
  const auto data = testing::open_fixture(directory, "D1");
  EXPECT_EQ(split_sequences("969,30,1", 64)[2], (SequenceRange{64, 64}));
  EXPECT_THROW(require_split("969,30,1", *data, Split::kTest), ConfigError);
}

}  // namespace
}  // namespace sevenfold

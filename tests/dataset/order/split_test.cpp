#include "sevenfold/dataset/order/split.h"

#include <gmock/gmock.h>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
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

TEST(Split, NamesAPartThatIsEmptyOrAbsent) {
  const testing::TemporaryDirectory directory;
  const auto data = testing::open_fixture(directory, "D1");
  EXPECT_THAT([&] { require_split("969,30,1", *data, Split::kTest); },
              ThrowsMessage<ConfigError>("dataset: split=\"969,30,1\": of the 64 documents of " +
                                         data->name() +
                                         " the test part gets none (its share is less than half of "
                                         "one); give that part a larger weight or a file of its "
                                         "own"));
  EXPECT_THAT([&] { require_split("1", *data, Split::kValid, "run.yaml:7 split=1"); },
              ThrowsMessage<ConfigError>(AllOf(StartsWith("dataset: run.yaml:7 split=1: of the "),
                                               HasSubstr("gets none (it has no weight)"))));
  EXPECT_THROW(split_sequences("all", 10), ConfigError);
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

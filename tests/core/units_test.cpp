#include "sevenfold/core/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace sevenfold {
namespace {

TEST(WithCommas, SeparatesThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(43616), "43,616");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
}

TEST(WithCommas, KeepsTheSignApart) {
  EXPECT_EQ(with_commas(-1), "-1");
  EXPECT_EQ(with_commas(-999), "-999");
  EXPECT_EQ(with_commas(-1000), "-1,000");
  EXPECT_EQ(with_commas(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(format_bytes(int64_t{1} << 60), "1024.0 PiB");
}

TEST(FormatDuration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(-1.0), "0s");
  EXPECT_EQ(format_duration(12.4), "12s");
  EXPECT_EQ(format_duration(59.6), "1m 00s");
  EXPECT_EQ(format_duration(245.0), "4m 05s");
  EXPECT_EQ(format_duration(3 * 3600 + 125), "3h 02m");
}

TEST(EditDistance, CountsEveryKindOfSlip) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("seed", "seed"), 0);
  EXPECT_EQ(edit_distance("seed", "sed"), 1);    // deletion
  EXPECT_EQ(edit_distance("seed", "sheed"), 1);  // insertion
  EXPECT_EQ(edit_distance("seed", "seeb"), 1);   // substitution
  EXPECT_EQ(edit_distance("seed", "sede"), 1);   // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("tensor_model_parallel_sise", "tensor_model_parallel_size"), 1);
}

TEST(EditDistance, IsSymmetric) {
  EXPECT_EQ(edit_distance("micro_batch_size", "batch_size"),
            edit_distance("batch_size", "micro_batch_size"));
  EXPECT_EQ(edit_distance("ca", "abc"), edit_distance("abc", "ca"));
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/dataset/indexed/dataset_summary.h"

#include <gmock/gmock.h>

#include "support/fixtures.h"

namespace sevenfold {
namespace {

TEST(DatasetSummary, CountsLengthsAndIds) {
  const testing::TemporaryDirectory directory;
  testing::write_d2(directory / "d2");
  const DatasetSummary summary = summarize(IndexedDataset(directory / "d2"));
  EXPECT_EQ(summary.num_documents, 7);
  EXPECT_EQ(summary.num_tokens, 16);
  EXPECT_EQ(summary.shortest, 0);
  EXPECT_EQ(summary.longest, 7);
  EXPECT_EQ(summary.num_empty, 3);
  EXPECT_EQ(summary.smallest_token_id, 1);
  EXPECT_EQ(summary.largest_token_id, 16);
  EXPECT_EQ(summary.scanned_tokens, 16);
}

TEST(DatasetSummary, StopsScanningAtItsLimit) {
  const testing::TemporaryDirectory directory;
  testing::write_d2(directory / "d2");
  const DatasetSummary summary = summarize(IndexedDataset(directory / "d2"), 12);
  EXPECT_EQ(summary.scanned_tokens, 6);
  EXPECT_EQ(summary.largest_token_id, 6);
}

TEST(DatasetSummary, OfNothingHasNoIds) {
  const testing::TemporaryDirectory directory;
  testing::write_indexed(directory / "none", {});
  const DatasetSummary summary = summarize(IndexedDataset(directory / "none"));
  EXPECT_EQ(summary.num_tokens, 0);
  EXPECT_EQ(summary.largest_token_id, -1);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/dataset/bigram.h"

#include <gmock/gmock.h>

#include <cmath>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/indexed/indexed_dataset.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

// Pairs run on over document borders: train 0 1 0 1 2, valid 0 1 2 2.
TEST(Bigram, AddsOneToEveryPairAndAveragesOverTheValidationPairs) {
  const testing::TemporaryDirectory directory;
  testing::write_indexed(directory / "x", {{0, 1, 0}, {}, {1, 2}, {0, 1, 2, 2}});
  const IndexedDataset data(directory / "x");
  // c(0,1) = 2 of c(0) = 2; c(1,2) = 1 of c(1) = 2; c(2,2) = 0 of c(2) = 0; V = 3.
  const double expected = -(std::log(3.0 / 5) + std::log(2.0 / 5) + std::log(1.0 / 3)) / 3;
  EXPECT_DOUBLE_EQ(bigram_cross_entropy(data, {0, 3}, data, {3, 4}, 3), expected);
}

TEST(Bigram, WithoutTrainingTextIsUniform) {
  const testing::TemporaryDirectory directory;
  testing::write_indexed(directory / "x", {{0, 1, 0}, {1, 2}});
  const IndexedDataset data(directory / "x");
  EXPECT_DOUBLE_EQ(bigram_cross_entropy(data, {0, 0}, data, {0, 2}, 101), std::log(101.0));
}

TEST(Bigram, RefusesWhatItCannotCount) {
  const testing::TemporaryDirectory directory;
  testing::write_indexed(directory / "x", {{0, 1, 0}, {1}});
  const IndexedDataset data(directory / "x");
  EXPECT_THROW(bigram_cross_entropy(data, {0, 1}, data, {0, 1}, 4097), ConfigError);
  EXPECT_THROW(bigram_cross_entropy(data, {0, 1}, data, {1, 2}, 3), DataError);
  EXPECT_THROW(bigram_cross_entropy(data, {0, 1}, data, {0, 2}, 1), DataError);
}

}  // namespace
}  // namespace sevenfold

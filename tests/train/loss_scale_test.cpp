#include "sevenfold/train/loss_scale.h"

#include <gtest/gtest.h>

namespace sevenfold {
namespace {

TEST(LossScale, IsOneButForFp16) {
  for (const Precision precision : {Precision::kFp64, Precision::kFp32, Precision::kBf16}) {
    LossScale scale(precision, {.constant = 128.0});
    scale.update(true);
    EXPECT_EQ(scale.value(), 1.0);
    EXPECT_FALSE(scale.is_dynamic());
  }
}

TEST(LossScale, StaysWhereItIsSet) {
  LossScale scale(Precision::kFp16, {.constant = 128.0});
  EXPECT_FALSE(scale.is_dynamic());
  for (int step = 0; step < 10; ++step) scale.update(true);
  EXPECT_EQ(scale.value(), 128.0);
}

TEST(LossScale, StartsAsTheExperimentsDefaultSays) {
  const LossScale scale(Precision::kFp16, {});
  EXPECT_TRUE(scale.is_dynamic());
  EXPECT_EQ(scale.value(), 4294967296.0);
}

LossScale small_scale() {
  return LossScale(Precision::kFp16,
                   {.initial = 64.0, .smallest = 4.0, .window = 3, .hysteresis = 2});
}

TEST(LossScale, HalvesAtTheSecondOverflowAndAtEachOneAfterIt) {
  LossScale scale = small_scale();
  scale.update(true);
  EXPECT_EQ(scale.value(), 64.0);
  scale.update(true);
  EXPECT_EQ(scale.value(), 32.0);
  scale.update(true);
  EXPECT_EQ(scale.value(), 16.0);
  for (int step = 0; step < 10; ++step) scale.update(true);
  EXPECT_EQ(scale.value(), 4.0) << "not below the smallest";
}

TEST(LossScale, DoublesAfterAWindowWithoutOverflow) {
  LossScale scale = small_scale();
  scale.update(false);
  scale.update(false);
  EXPECT_EQ(scale.value(), 64.0);
  scale.update(false);
  EXPECT_EQ(scale.value(), 128.0);
  for (int step = 0; step < 3; ++step) scale.update(false);
  EXPECT_EQ(scale.value(), 256.0);
}

TEST(LossScale, CountsTheWindowAnewAfterAnOverflow) {
  LossScale scale = small_scale();
  scale.update(false);
  scale.update(false);
  scale.update(true);
  scale.update(false);
  scale.update(false);
  EXPECT_EQ(scale.value(), 64.0);
  scale.update(false);
  EXPECT_EQ(scale.value(), 128.0);
}

// A good step alone does not forgive an overflow; a whole window does.
TEST(LossScale, ForgivesOverflowsOnlyWhenItDoubles) {
  LossScale scale = small_scale();
  scale.update(true);
  scale.update(false);
  scale.update(true);
  EXPECT_EQ(scale.value(), 32.0);
  for (int step = 0; step < 3; ++step) scale.update(false);
  EXPECT_EQ(scale.value(), 64.0);
  scale.update(true);
  EXPECT_EQ(scale.value(), 64.0);
}

}  // namespace
}  // namespace sevenfold

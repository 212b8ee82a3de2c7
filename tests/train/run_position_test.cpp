#include "sevenfold/train/run_position.h"

#include <gtest/gtest.h>

namespace sevenfold {
namespace {

Config with_schedule() {
  Config config;
  config.batch = {
      .micro_batch_size = 2, .global_batch_size = 16, .schedule = {{0, 4}, {10, 8}, {40, 16}}};
  config.mesh.dp = 2;
  return config;
}

TEST(NumMicrobatches, DividesTheBatchOfTheStep) {
  const Config config = with_schedule();
  EXPECT_EQ(num_microbatches(config, 0), 1);
  EXPECT_EQ(num_microbatches(config, 12), 2);
  EXPECT_EQ(num_microbatches(config, 44), 4);
}

}  // namespace
}  // namespace sevenfold

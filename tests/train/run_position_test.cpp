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

TEST(GlobalBatchSize, IsThatOfTheLastThresholdReached) {
  const BatchConfig batch = with_schedule().batch;
  EXPECT_EQ(global_batch_size(batch, 0), 4);
  EXPECT_EQ(global_batch_size(batch, 9), 4);
  EXPECT_EQ(global_batch_size(batch, 10), 8);
  EXPECT_EQ(global_batch_size(batch, 39), 8);
  EXPECT_EQ(global_batch_size(batch, 40), 16);
  EXPECT_EQ(global_batch_size(batch, 1'000'000), 16);
  EXPECT_EQ(global_batch_size({.global_batch_size = 6}, 100), 6);
}

TEST(NumMicrobatches, DividesTheBatchOfTheStep) {
  const Config config = with_schedule();
  EXPECT_EQ(num_microbatches(config, 0), 1);
  EXPECT_EQ(num_microbatches(config, 12), 2);
  EXPECT_EQ(num_microbatches(config, 44), 4);
}

// Steps taken one by one, for comparison.
int64_t counted_iterations(const Config& config) {
  int64_t iterations = 0, consumed = 0;
  while (consumed + global_batch_size(config.batch, consumed) <= config.run.train_samples) {
    consumed += global_batch_size(config.batch, consumed);
    ++iterations;
  }
  return iterations;
}

TEST(NumIterations, IsWhatTheSamplesAreEnoughFor) {
  Config config = with_schedule();
  for (const int64_t samples : {1, 4, 7, 8, 11, 12, 13, 19, 20, 35, 36, 43, 44, 45, 59, 60, 1000}) {
    config.run.train_samples = samples;
    EXPECT_EQ(num_iterations(config), counted_iterations(config)) << samples;
  }
  config.batch.schedule.clear();
  config.run.train_samples = 100;
  EXPECT_EQ(num_iterations(config), 6);
  config.run.train_samples = 0;
  config.run.train_iters = 7;
  EXPECT_EQ(num_iterations(config), 7);
}

TEST(RunSamples, AreThoseAskedForOrTheIterationsWorth) {
  Config config = with_schedule();
  config.run.train_iters = 5;
  EXPECT_EQ(run_samples(config), 80);
  config.run.train_samples = 33;
  EXPECT_EQ(run_samples(config), 33);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/config/batch_schedule.h"

#include <gmock/gmock.h>

#include <sstream>

#include "dataset/golden.h"

namespace sevenfold {
namespace {

// "0:8 2K:16" with thresholds in tokens when a sequence length is given.
std::vector<BatchStage> stages_of(const std::string& schedule, int64_t seq_length) {
  std::vector<BatchStage> stages;
  std::istringstream words(schedule);
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    int64_t from = std::stoll(word);
    if (word[colon - 1] == 'K') from *= 1000;
    stages.push_back({from / seq_length, std::stoll(word.substr(colon + 1))});
  }
  return stages;
}

// The growing batch of older releases, asked at every number of samples: start + increment *
// int(consumed / (samples / num_increments)), divisions in double; beyond `samples` the full batch.
std::vector<BatchStage> growing_stages(const nlohmann::json& entry) {
  const int64_t start = entry["start"], increment = entry["increment"];
  const int64_t samples = entry["rampup_samples"], full = entry["global_batch"];
  const double per_increment =
      static_cast<double>(samples) / static_cast<double>((full - start) / increment);
  std::vector<BatchStage> stages;
  for (int64_t consumed = 0; consumed <= samples + 1; ++consumed) {
    int64_t size = full;
    if (consumed <= samples)
      size =
          start + increment * static_cast<int64_t>(static_cast<double>(consumed) / per_increment);
    if (stages.empty() || stages.back().global_batch_size != size)
      stages.push_back({consumed, size});
  }
  return stages;
}

BatchConfig batch_of(const nlohmann::json& entry) {
  BatchConfig batch;
  if (entry.contains("schedule")) {
    const auto& seq_length = entry["seq_length"];
    batch.schedule =
        stages_of(entry["schedule"], seq_length.is_null() ? 1 : seq_length.get<int64_t>());
  } else {
    batch.schedule = growing_stages(entry);
  }
  batch.global_batch_size = batch.schedule.back().global_batch_size;
  return batch;
}

TEST(BatchSchedule, EqualsMegatronsStepByStep) {
  for (const auto& entry : testing::megatron_golden()["batch_schedule"]) {
    SCOPED_TRACE(entry.dump());
    const BatchConfig batch = batch_of(entry);
    int64_t consumed = 0;
    for (const auto& expected : entry["global_batch_per_iteration"]) {
      EXPECT_EQ(global_batch_size(batch, consumed), expected.get<int64_t>());
      consumed += expected.get<int64_t>();
    }
  }
  EXPECT_EQ(testing::megatron_golden()["batch_schedule"].size(), 3U);
}

TEST(BatchSchedule, IsConstantWithoutStages) {
  BatchConfig batch;
  batch.global_batch_size = 12;
  EXPECT_EQ(global_batch_size(batch, 0), 12);
  EXPECT_EQ(global_batch_size(batch, int64_t{1} << 60), 12);
}

}  // namespace
}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/train/memory_report.h"
#include "sevenfold/train/output/console.h"
#include "sevenfold/train/output/event_file.h"
#include "sevenfold/train/output/metrics.h"
#include "sevenfold/train/output/run_directory.h"
#include "sevenfold/train/rank_statistics.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {

// A step as rank 0 tells of it.
struct StepReport {
  RunPosition position;  // after the step
  StepResult result;
  double time_s = 0.0;
};

// Where the story of a run goes: console, metrics file and, where asked for, a TensorBoard file.
// Rank 0's, used by its thread.
class RunLog {
 public:
  // peak_tflops: of one rank's processor, for MFU; 0: not known. continues_after: the iteration
  // that the run goes on from; 0: it starts anew. config outlives the log.
  RunLog(const Config& config, const RunDirectory& directory, double peak_tflops,
         int64_t continues_after = 0);

  // How throughput is counted, in words; once, before the first step.
  void explain_throughput();
  void step(const StepReport& report, const std::vector<RankStatistics>& all);
  void validation(int64_t iteration, const ValidationResult& result) {
    evaluation(Split::kValid, iteration, result);
  }
  // Of the test set, after the last step.
  void test(int64_t iteration, const ValidationResult& result) {
    evaluation(Split::kTest, iteration, result);
  }
  // At the end: lines of the console, and memory.json.
  void memory(const MemoryReport& report);
  void print(const std::string& line) { console_.print(line); }

 private:
  double flops_per_rank(int64_t samples) const;
  void evaluation(Split split, int64_t iteration, const ValidationResult& result);
  void step_to_tensorboard(const StepReport& report);

  const Config& config_;
  double peak_flops_;
  std::filesystem::path memory_path_;
  MetricsWriter metrics_;
  Console console_;
  std::optional<EventFile> tensorboard_;
};

}  // namespace sevenfold

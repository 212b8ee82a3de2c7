#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sevenfold/dataset/order/split.h"
#include "sevenfold/dist/ledger.h"

namespace sevenfold {

// Greatest bytes of the fullest rank since the run began.
struct PeakMemory {
  int64_t total_bytes = 0;
  std::array<int64_t, kNumMemoryCategories> category_bytes{};  // indexed by MemoryCategory
};

// What metrics.jsonl keeps of one step. Losses are means over the unmasked tokens of the global
// batch.
struct StepMetrics {
  int64_t iteration = 0;  // from 1
  double loss = 0.0;
  double grad_norm = 0.0;      // before clipping
  double lr = 0.0;             // that the step used
  int64_t tokens = 0;          // of the global batch, masked ones too: tokens_per_s * step_time_s
  int64_t trained_tokens = 0;  // unmasked: what the loss is the mean over
  double step_time_s = 0.0;
  double tokens_per_s = 0.0;
  double bubble_rate = 0.0;
  double exposed_communication_s = 0.0;
  PeakMemory peak_memory;
  double loss_scale = 1.0;  // that the step used
  bool is_skipped = false;  // weights unchanged
  // Model and hardware FLOPs a second over the processor's peak, where that is known.
  std::optional<double> mfu;
  std::optional<double> hfu;
};

// Of the validation or the test set.
struct EvaluationMetrics {
  Split split = Split::kValid;
  int64_t iteration = 0;  // training steps done
  double loss = 0.0;
  int64_t tokens = 0;
  int64_t samples = 0;
};

// One JSON object without line end, keys in the order of the contract. Numbers read back to the
// same bits. JSON has no NaN and no infinity: both become null, which readers tell from 0 and from
// a missing key.
std::string to_json_line(const StepMetrics& metrics);
std::string to_json_line(const EvaluationMetrics& metrics);

// Writes metrics.jsonl, a line per call, each handed to the system at once: what a killed run
// leaves is whole lines. Used by one thread of one rank.
class MetricsWriter {
 public:
  // continues_after: the iteration that the run goes on from. 0: it starts anew, and replaces the
  // file. Else its lines up to that iteration stay: those behind it will be written again, and what
  // a killed run left torn goes.
  // Throws Error with the path and the system's reason; so does write().
  explicit MetricsWriter(std::filesystem::path path, int64_t continues_after = 0);

  void write(const StepMetrics& metrics) { write_line(to_json_line(metrics)); }
  void write(const EvaluationMetrics& metrics) { write_line(to_json_line(metrics)); }

 private:
  void write_line(const std::string& line);

  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace sevenfold

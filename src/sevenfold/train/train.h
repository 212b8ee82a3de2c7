#pragma once

#include <optional>
#include <string>

#include "sevenfold/config/config.h"
#include "sevenfold/train/output/run_directory.h"
#include "sevenfold/train/stop_rule.h"

namespace sevenfold {

struct TrainOptions {
  Resume resume = Resume::kAuto;
  // kPath: a checkpoint, or a folder of checkpoints, of which the newest is meant.
  std::string resume_path = {};
  int threads_per_rank = 0;  // LibTorch's threads in a rank; 0: cores / ranks, at least 1
  double peak_tflops = 0.0;  // of one rank's processor, for MFU; 0: not known
  int64_t check_replicas_interval = 0;  // steps between comparisons of replicated bits; 0: none
  bool trace = false;                   // write DIR/trace.json
};

struct TrainOutcome {
  int64_t iterations = 0;
  double loss = 0.0;  // of the last step
  std::optional<double> validation_loss;
  std::optional<double> bigram_cross_entropy;  // nats per token, where it was computed
  StopReason stop = StopReason::kNone;
};

// The whole job: data, run directory, ranks, steps, validation, metrics. Prints to stdout, draws
// progress on stderr. Throws ConfigError or DataError before the run writes anything (text that the
// file asks to prepare may have been tokenized by then), other errors under way.
TrainOutcome train(const Config& config, const TrainOptions& options);

}  // namespace sevenfold

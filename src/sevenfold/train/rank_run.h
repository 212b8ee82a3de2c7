#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/core/stop_signals.h"
#include "sevenfold/dataset/order/sample_stream.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/pipeline/tables.h"
#include "sevenfold/train/data.h"
#include "sevenfold/train/output/run_log.h"
#include "sevenfold/train/output/trace_file.h"
#include "sevenfold/train/run_start.h"
#include "sevenfold/train/train.h"

namespace sevenfold {

// A run as its ranks see it.
struct Run {
  const Config& config;
  const TrainOptions& options;
  const DataSources& data;
  const SampleStream& train_samples;  // of data.train
  std::shared_ptr<const PipelineTables> tables;
  std::vector<Timeline>& timelines;  // by rank; empty: no trace
  const StopSignals& signals;
  RunLog& log;            // rank 0 only
  TraceFile* trace;       // rank 0 only; null: no trace
  TrainOutcome& outcome;  // rank 0 only
  RunStart& start;        // its checkpoint is closed when all ranks have read it
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

// Writes what all ranks did since the last call, if a trace is asked for. Ranks are threads of this
// process.
void write_trace(Run& run);

// What one rank does from start weights to the last step. Collective over all ranks.
void train_rank(RankContext& rank, Run& run);

}  // namespace sevenfold

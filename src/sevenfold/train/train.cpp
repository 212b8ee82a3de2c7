#include "sevenfold/train/train.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sevenfold/core/error.h"
#include "sevenfold/core/stop_signals.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dataset/bigram.h"
#include "sevenfold/dataset/order/samples_needed.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/data.h"
#include "sevenfold/train/limits.h"
#include "sevenfold/train/memory_report.h"
#include "sevenfold/train/output/run_log.h"
#include "sevenfold/train/output/trace_file.h"
#include "sevenfold/train/rank_statistics.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/replica_check.h"

namespace sevenfold {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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
};

void validate(RankTrainer& trainer, RankContext& rank, Run& run) {
  const ValidationResult result = trainer.validate(*run.data.valid);
  if (rank.rank != 0) return;
  run.outcome.validation_loss = result.loss;
  run.log.validation(trainer.position().iteration, result);
}

// As Megatron: once, over as many samples as a validation, from the first on.
void test(RankTrainer& trainer, RankContext& rank, Run& run) {
  if (!run.data.test) return;
  const int64_t samples = test_samples_needed(run.config.run, run.config.batch);
  const ValidationResult result = trainer.evaluate(*run.data.test, {.num_samples = samples});
  if (rank.rank == 0) run.log.test(trainer.position().iteration, result);
}

void print_size(int64_t num_parameters, const RankTrainer& trainer, const Config& config,
                RunLog& log) {
  log.print(fmt::format("model: {} parameters, {} in {} on {}", with_commas(num_parameters),
                        format_bytes(trainer.parameter_bytes()),
                        precision_name(config.run.precision),
                        config.mesh.pp > 1 ? "rank 0" : "each rank"));
}

// What all ranks did since the last call. Ranks are threads of this process.
void write_trace(Run& run) {
  if (run.trace == nullptr) return;
  for (size_t rank = 0; rank < run.timelines.size(); ++rank)
    run.trace->write(static_cast<int64_t>(rank), run.timelines[rank].take());
}

bool checks_replicas_after(int64_t iteration, const TrainOptions& options) {
  return options.check_replicas_interval > 0 && iteration % options.check_replicas_interval == 0;
}

// One step and what is said of it. Returns whether, and why, the run ends with it.
StopReason train_step(RankTrainer& trainer, RankContext& rank, Run& run, Clock::time_point began) {
  const double blocked_before_s = rank.traffic.total().seconds_blocked;
  const Clock::time_point start = Clock::now();
  const StepResult result = trainer.step();
  const double time_s = seconds_since(start);
  const RunPosition& position = trainer.position();
  if (checks_replicas_after(position.iteration, run.options))
    check_replicas(trainer.parameters(), trainer.weights(), trainer.optimizer(),
                   trainer.is_sharded(), rank, position.iteration);
  StopReason stop = StopReason::kNone;
  if (rank.rank == 0)
    stop = stop_after(run.config.run, position.iteration, seconds_since(began),
                      run.signals.stop_requested());
  const auto all =
      gather_statistics(statistics_of(rank, stop, blocked_before_s, trainer.execution()), rank);
  if (rank.rank == 0) {
    run.log.step({.position = position, .result = result, .time_s = time_s}, all);
    run.outcome.iterations = position.iteration;
    run.outcome.loss = result.loss;
    run.outcome.stop = stop;
    write_trace(run);
  }
  return all.front().stop;
}

// At the interval and at the end; who sends a signal wants the process to go.
bool validates_after(int64_t iteration, StopReason stop, const RunConfig& run) {
  if (stop == StopReason::kSignal) return false;
  return stop != StopReason::kNone || iteration == run.train_iters ||
         iteration % run.eval_interval == 0;
}

void report_memory(RankContext& rank, Run& run) {
  const auto all = gather_memory(memory_of(rank, run.config.model.num_layers), rank);
  if (rank.rank == 0) run.log.memory(memory_report(all, process_memory()));
}

// What one rank does from start weights to the last step.
void train_rank(RankContext& rank, Run& run) {
  const Clock::time_point began = Clock::now();
  if (!run.timelines.empty()) {
    rank.timeline = &run.timelines[static_cast<size_t>(rank.rank)];
    rank.traffic.set_timeline(rank.timeline);
  }
  RankTrainer trainer(run.config, run.train_samples, rank, run.tables);
  const int64_t num_parameters = trainer.count_parameters();
  if (rank.rank == 0) {
    print_size(num_parameters, trainer, run.config, run.log);
    run.log.explain_throughput();
    if (!run.data.valid) run.log.print("no validation (eval_iters or eval_interval is 0)");
  }
  if (run.config.run.skip_train) {
    validate(trainer, rank, run);
    return test(trainer, rank, run);
  }
  const int64_t iterations = run.config.run.train_iters;
  StopReason stop = StopReason::kNone;
  while (trainer.position().iteration < iterations && stop == StopReason::kNone) {
    stop = train_step(trainer, rank, run, began);
    const int64_t iteration = trainer.position().iteration;
    if (run.data.valid && validates_after(iteration, stop, run.config.run))
      validate(trainer, rank, run);
  }
  if (stop == StopReason::kNone) test(trainer, rank, run);
  report_memory(rank, run);
}

// The yardstick for text with a small vocabulary; counting much more than this would be felt at the
// start.
std::optional<double> bigram_baseline(const Config& config, const DataSources& data) {
  constexpr int64_t kMostTokens = 200'000'000;
  // It is of the whole split; the loss of a part of it would be compared with another text.
  if (!data.train_text || !data.valid_text || !config.run.full_validation) return std::nullopt;
  if (config.model.vocab_size > kMaxBigramVocab) return std::nullopt;
  if (data.train_text->index().tokens_per_epoch > kMostTokens) return std::nullopt;
  return bigram_cross_entropy(*data.train_text, *data.valid_text, config.model.vocab_size);
}

void print_banner(const Config& config, const RunDirectory& directory, int threads_per_rank) {
  fmt::print(
      "simulated cluster: {} rank{} as threads of this process, {} thread{} each (for proving, "
      "debugging and "
      "small runs)\n",
      config.mesh.world_size(), config.mesh.world_size() == 1 ? "" : "s", threads_per_rank,
      threads_per_rank == 1 ? "" : "s");
  fmt::print("batch: global {} = micro {} x dp {} x {} micro batch{} per step\n",
             config.batch.global_batch_size, config.batch.micro_batch_size, config.mesh.dp,
             config.batch.num_microbatches, config.batch.num_microbatches == 1 ? "" : "es");
  fmt::print("output: {}\n", directory.path().string());
}

int default_threads(const MeshShape& mesh) {
  const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return static_cast<int>(std::max<int64_t>(1, cores / mesh.world_size()));
}

DataSources open_with_notices(const Config& config) {
  DataSources data = open_run_data(config);
  for (const std::string& notice : data.notices) fmt::print("notice: {}\n", notice);
  return data;
}

}  // namespace

TrainOutcome train(const Config& config, const TrainOptions& options) {
  if (config.run.skip_train && !validates(config.run))
    throw ConfigError(
        "train: there is nothing to validate: eval_iters is 0; use eval_iters=N or "
        "full_validation=true");
  check_fits_machine(config);
  const Mesh mesh(config.mesh);
  const auto tables = std::make_shared<const PipelineTables>(config);
  const DataSources data = open_with_notices(config);
  const SampleStream train_samples(config, *data.train);
  TrainOutcome outcome;
  outcome.bigram_cross_entropy = bigram_baseline(config, data);
  const RunDirectory directory = RunDirectory::open(config.run.directory, options.resume);
  directory.remove_earlier_results();
  directory.write_resolved_config(config.resolved_yaml);
  const int threads =
      options.threads_per_rank > 0 ? options.threads_per_rank : default_threads(config.mesh);
  print_banner(config, directory, threads);

  if (outcome.bigram_cross_entropy)
    fmt::print("bigram cross entropy of the validation split: {:.6f} nats per token\n",
               *outcome.bigram_cross_entropy);
  const StopSignals signals;
  RunLog log(config, directory, options.peak_tflops);
  const auto ranks = static_cast<size_t>(config.mesh.world_size());
  std::vector<Timeline> timelines(options.trace ? ranks : 0);
  std::optional<TraceFile> trace;
  if (options.trace) trace.emplace(directory.path() / "trace.json", config.mesh.world_size());
  Run run{config,        options, data,
          train_samples, tables,  timelines,
          signals,       log,     trace ? &*trace : nullptr,
          outcome};
  try {
    run_ranks(mesh,
              {.timeout = std::chrono::seconds(config.run.timeout_s), .threads_per_rank = threads},
              [&](RankContext& rank) { train_rank(rank, run); });
    write_trace(run);
  } catch (const DataError& error) {
    throw Error(error.what());  // met under way: a failed run (exit code 1), not a refused one
  }
  return outcome;
}

}  // namespace sevenfold

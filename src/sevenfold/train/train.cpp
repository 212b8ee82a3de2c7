#include "sevenfold/train/train.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dataset/bigram.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/console.h"
#include "sevenfold/train/data.h"
#include "sevenfold/train/flops.h"
#include "sevenfold/train/metrics.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/signals.h"

namespace sevenfold {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What the ranks tell each other after a step: small, so that one exchange serves stopping and
// reporting.
struct RankStatistics {
  double stop = 0.0;  // rank 0 was asked to stop; all must agree on it
  double blocked_s = 0.0;
  double peak_bytes = 0.0;
  std::array<double, kNumMemoryCategories> peak_by_category{};
};
constexpr int64_t kStatistics = 3 + kNumMemoryCategories;

std::vector<RankStatistics> gather_statistics(const RankStatistics& mine, const RankContext& rank) {
  const at::TensorOptions fp64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor input = at::empty({kStatistics}, fp64);
  auto* values = input.data_ptr<double>();
  values[0] = mine.stop;
  values[1] = mine.blocked_s;
  values[2] = mine.peak_bytes;
  std::copy(mine.peak_by_category.begin(), mine.peak_by_category.end(), values + 3);
  Communicator& world = rank.group("world");
  const at::Tensor output = at::empty({world.size() * kStatistics}, fp64);
  world.all_gather(output, input).wait();

  std::vector<RankStatistics> all(static_cast<size_t>(world.size()));
  const auto* gathered = output.data_ptr<double>();
  for (RankStatistics& statistics : all) {
    statistics.stop = gathered[0];
    statistics.blocked_s = gathered[1];
    statistics.peak_bytes = gathered[2];
    std::copy(gathered + 3, gathered + kStatistics, statistics.peak_by_category.begin());
    gathered += kStatistics;
  }
  return all;
}

RankStatistics statistics_of(const RankContext& rank, bool stop, double blocked_before_s) {
  RankStatistics statistics{.stop = stop ? 1.0 : 0.0,
                            .blocked_s = rank.traffic.total().seconds_blocked - blocked_before_s,
                            .peak_bytes = static_cast<double>(rank.memory.peak_total())};
  const auto at_peak = rank.memory.at_peak();
  std::transform(at_peak.begin(), at_peak.end(), statistics.peak_by_category.begin(),
                 [](int64_t bytes) { return static_cast<double>(bytes); });
  return statistics;
}

PeakMemory fullest_rank(const std::vector<RankStatistics>& all) {
  const auto fullest = std::max_element(
      all.begin(), all.end(),
      [](const auto& left, const auto& right) { return left.peak_bytes < right.peak_bytes; });
  PeakMemory peak{.total_bytes = static_cast<int64_t>(fullest->peak_bytes)};
  std::transform(fullest->peak_by_category.begin(), fullest->peak_by_category.end(),
                 peak.category_bytes.begin(),
                 [](double bytes) { return static_cast<int64_t>(bytes); });
  return peak;
}

// Rank 0's view of the run: console and metrics file.
class RunLog {
 public:
  RunLog(const Config& config, const RunDirectory& directory)
      : config_(config),
        metrics_(directory.metrics()),
        console_({.bar_is_terminal = isatty(STDERR_FILENO) == 1,
                  .train_iters = config.run.train_iters,
                  .log_interval = config.run.log_interval,
                  .global_batch_size = config.batch.global_batch_size,
                  .flops_per_rank = step_flops(config.model, config.batch.global_batch_size) /
                                    static_cast<double>(config.mesh.world_size())}) {}

  void step(int64_t iteration, const StepResult& result, double step_time_s,
            const std::vector<RankStatistics>& all) {
    double exposed_s = 0.0;
    for (const RankStatistics& statistics : all)
      exposed_s = std::max(exposed_s, statistics.blocked_s);
    metrics_.write(StepMetrics{.iteration = iteration,
                               .loss = result.loss,
                               .grad_norm = result.gradient_norm,
                               .lr = result.learning_rate,
                               .tokens = result.trained_tokens,
                               .step_time_s = step_time_s,
                               .tokens_per_s = static_cast<double>(result.tokens) / step_time_s,
                               .bubble_rate = 0.0,  // one stage: nobody waits for a pipeline
                               .exposed_communication_s = exposed_s,
                               .peak_memory = fullest_rank(all)});
    console_.report_step(
        ConsoleStep{.iteration = iteration,
                    .consumed_samples = iteration * config_.batch.global_batch_size,
                    .step_time_s = step_time_s,
                    .lr = result.learning_rate,
                    .lm_loss = result.loss,
                    .grad_norm = result.gradient_norm});
    if (result.trained_tokens == 0)
      console_.print(fmt::format(
          "warning: no token of iteration {} is trained (all labels are masked): the loss "
          "is 0 and weights move by weight decay and momentum only",
          iteration));
  }

  void validation(int64_t iteration, const ValidationResult& result) {
    metrics_.write(ValidationMetrics{iteration, result.loss, result.trained_tokens});
    console_.report_validation(iteration, result.loss);
  }

  void print(const std::string& line) { console_.print(line); }

 private:
  const Config& config_;
  MetricsWriter metrics_;
  Console console_;
};

// A run as its ranks see it.
struct Run {
  const Config& config;
  const DataSources& data;
  const StopSignals& signals;
  RunLog& log;            // rank 0 only
  TrainOutcome& outcome;  // rank 0 only
};

void validate(RankTrainer& trainer, int64_t iteration, RankContext& rank, Run& run) {
  const SampleSource& valid = *run.data.valid;
  const ValidationResult result = trainer.evaluate(valid, validation_samples(run.config, valid));
  if (rank.rank != 0) return;
  run.outcome.validation_loss = result.loss;
  run.log.validation(iteration, result);
}

void print_size(const RankTrainer& trainer, const Config& config, RunLog& log) {
  log.print(fmt::format(
      "model: {} parameters, {} in {} on each rank", with_commas(num_parameters(config.model)),
      format_bytes(trainer.parameter_bytes()), precision_name(config.run.precision)));
}

// What one rank does from start weights to the last step.
void train_rank(RankContext& rank, Run& run) {
  RankTrainer trainer(run.config, *run.data.train, rank);
  if (rank.rank == 0) print_size(trainer, run.config, run.log);
  const RunConfig& settings = run.config.run;
  for (int64_t iteration = 1; iteration <= settings.train_iters; ++iteration) {
    const double blocked_before_s = rank.traffic.total().seconds_blocked;
    const Clock::time_point start = Clock::now();
    const StepResult result = trainer.step(iteration - 1);
    const double step_time_s = seconds_since(start);
    const bool asked = rank.rank == 0 && run.signals.stop_requested();
    const auto all = gather_statistics(statistics_of(rank, asked, blocked_before_s), rank);
    const bool stop = all.front().stop != 0.0;
    if (rank.rank == 0) {
      run.log.step(iteration, result, step_time_s, all);
      run.outcome.iterations = iteration;
      run.outcome.loss = result.loss;
      run.outcome.stopped_by_signal = stop;
    }
    const bool last = stop || iteration == settings.train_iters;
    if (run.data.valid && !stop && (last || iteration % settings.eval_interval == 0))
      validate(trainer, iteration, rank, run);
    if (stop) break;
  }
}

// The yardstick for text with a small vocabulary; counting much more than this would be felt at the
// start.
std::optional<double> bigram_baseline(const Config& config, const DataSources& data) {
  constexpr int64_t kMostTokens = 200'000'000;
  if (!data.valid || config.model.vocab_size > kMaxBigramVocab) return std::nullopt;
  if (data.train->data().num_tokens() > kMostTokens) return std::nullopt;
  return bigram_cross_entropy(*data.train, *data.valid, config.model.vocab_size);
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

// Progress of preparing data: one redrawn line on a terminal, plain lines at every fifth elsewhere.
class PrepareLine {
 public:
  void show(const std::string& what, double fraction) {
    const auto percent = static_cast<int>(fraction * 100.0);
    if (isatty(STDERR_FILENO) == 1) {
      fmt::print(stderr, "\r{} {}%{}", what, percent, percent == 100 ? "\n" : "");
    } else if (percent >= next_) {
      fmt::print(stderr, "{} {}%\n", what, percent);
      next_ = percent / 20 * 20 + 20;
    }
  }

 private:
  int next_ = 0;
};

}  // namespace

TrainOutcome train(Config config, const TrainOptions& options) {
  const Mesh mesh(config.mesh);
  PrepareLine preparing;
  const DataSources data = open_run_data(
      config, [&](const std::string& what, double fraction) { preparing.show(what, fraction); });
  const RunDirectory directory = RunDirectory::open(config.run.directory, options.resume);
  directory.write_resolved_config(config.resolved_yaml);
  const int threads =
      options.threads_per_rank > 0 ? options.threads_per_rank : default_threads(config.mesh);
  print_banner(config, directory, threads);

  TrainOutcome outcome;
  outcome.bigram_cross_entropy = bigram_baseline(config, data);
  if (outcome.bigram_cross_entropy)
    fmt::print("bigram cross entropy of the validation split: {:.6f} nats per token\n",
               *outcome.bigram_cross_entropy);
  const StopSignals signals;
  RunLog log(config, directory);
  Run run{config, data, signals, log, outcome};
  try {
    run_ranks(mesh,
              {.timeout = std::chrono::seconds(config.run.timeout_s),
               .threads_per_rank = threads,
               .faults = options.faults},
              [&](RankContext& rank) { train_rank(rank, run); });
  } catch (const DataError& error) {
    throw Error(error.what());  // met under way: a failed run (exit code 1), not a refused one
  }
  return outcome;
}

}  // namespace sevenfold

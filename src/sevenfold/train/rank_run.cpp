#include "sevenfold/train/rank_run.h"

#include <fmt/format.h>

#include <optional>

#include "sevenfold/core/units.h"
#include "sevenfold/dataset/order/samples_needed.h"
#include "sevenfold/train/memory_report.h"
#include "sevenfold/train/rank_statistics.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/replica_check.h"
#include "sevenfold/train/saving.h"

namespace sevenfold {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

void restore(RankTrainer& trainer, RankContext& rank, Run& run) {
  const RestoreOptions& options = run.start.restores;
  trainer.restore(*run.start.checkpoint, options);
  rank.group("world").barrier();
  if (rank.rank != 0) return;
  run.log.print(fmt::format("{} {}: step {}, {} samples",
                            options.run ? "goes on from" : "weights of",
                            run.start.checkpoint->folder().string(), trainer.position().iteration,
                            trainer.position().consumed_samples));
  run.start.checkpoint.reset();
}

void print_size(int64_t num_parameters, const RankTrainer& trainer, const Config& config,
                RunLog& log) {
  log.print(fmt::format("model: {} parameters, {} in {} on {}", with_commas(num_parameters),
                        format_bytes(trainer.parameter_bytes()),
                        precision_name(config.run.precision),
                        config.mesh.pp > 1 ? "rank 0" : "each rank"));
}

bool checks_replicas_after(int64_t iteration, const TrainOptions& options) {
  return options.check_replicas_interval > 0 && iteration % options.check_replicas_interval == 0;
}

void check_replicas_if_due(RankTrainer& trainer, RankContext& rank, const Run& run) {
  const int64_t iteration = trainer.position().iteration;
  if (checks_replicas_after(iteration, run.options))
    check_replicas(trainer.parameters(), trainer.weights(), trainer.optimizer(),
                   trainer.is_sharded(), rank, iteration);
}

// A step that this rank has done, and what the ranks tell each other of it.
struct DoneStep {
  RunPosition position;
  double time_s = 0.0;
  StatisticsExchange statistics;
};

DoneStep done_step(double time_s, double blocked_before_s, const RankTrainer& trainer,
                   RankContext& rank, const Run& run) {
  StopReason stop = StopReason::kNone;
  if (rank.rank == 0)
    stop = stop_after(run.config.run, trainer.position().iteration, seconds_since(run.began),
                      run.signals.stop_requested());
  return {.position = trainer.position(),
          .time_s = time_s,
          .statistics = StatisticsExchange(
              statistics_of(rank, stop, blocked_before_s, trainer.execution()), rank)};
}

// Returns whether, and why, the run ends with the step.
StopReason report(DoneStep& step, const StepResult& result, RankContext& rank, Run& run) {
  const auto all = step.statistics.finish();
  if (rank.rank == 0) {
    run.log.step({.position = step.position, .result = result, .time_s = step.time_s}, all);
    run.outcome.iterations = step.position.iteration;
    run.outcome.loss = result.loss;
    run.outcome.stop = all.front().stop;
    write_trace(run);
  }
  return all.front().stop;
}

// One step and what is said of it.
StopReason train_step(RankTrainer& trainer, RankContext& rank, Run& run) {
  const double blocked_before_s = rank.traffic.total().seconds_blocked;
  const Clock::time_point start = Clock::now();
  const StepResult result = trainer.step();
  const double time_s = seconds_since(start);
  check_replicas_if_due(trainer, rank, run);
  DoneStep done = done_step(time_s, blocked_before_s, trainer, rank, run);
  return report(done, result, rank, run);
}

bool is_validation_due(int64_t iteration, const RunConfig& run) {
  return iteration % run.eval_interval == 0;
}

// At the interval and at the end; who sends a signal wants the process to go.
bool validates_after(int64_t iteration, StopReason stop, const RunConfig& run) {
  if (stop == StopReason::kSignal) return false;
  return stop != StopReason::kNone || iteration == run.train_iters ||
         is_validation_due(iteration, run);
}

void save_run(const RankTrainer& trainer, RankContext& rank, Run& run) {
  const SavedCheckpoint saved = save(trainer, run.config, rank);
  if (rank.rank != 0) return;
  run.log.print(fmt::format("saved {} ({} in {:.1f} s)", saved.folder.string(),
                            format_bytes(saved.bytes), saved.seconds));
}

// Whether something comes after the step that needs certain weights.
bool settles_after(int64_t iteration, const Run& run) {
  const RunConfig& config = run.config.run;
  const bool is_last = iteration == config.train_iters ||
                       (config.exit_interval > 0 && iteration % config.exit_interval == 0);
  return is_last || checks_replicas_after(iteration, run.options) ||
         saves_after(iteration, StopReason::kNone, run.config) ||
         (run.data.valid && validates_after(iteration, StopReason::kNone, config));
}

// One step without a barrier; it stays open, and what the one before did is said. So a run that is
// stopped from outside ends one step later.
StopReason train_step_ahead(RankTrainer& trainer, RankContext& rank, Run& run,
                            std::optional<DoneStep>& open) {
  const double blocked_before_s = rank.traffic.total().seconds_blocked;
  const Clock::time_point start = Clock::now();
  trainer.compute_gradients();
  trainer.apply_ahead();
  StopReason stop = StopReason::kNone;
  if (const auto before = trainer.take_settled()) stop = report(*open, *before, rank, run);
  open.emplace(done_step(seconds_since(start), blocked_before_s, trainer, rank, run));
  if (stop == StopReason::kNone && !settles_after(trainer.position().iteration, run)) return stop;
  const Clock::time_point settling = Clock::now();
  trainer.settle();
  open->time_s += seconds_since(settling);
  check_replicas_if_due(trainer, rank, run);
  stop = report(*open, *trainer.take_settled(), rank, run);
  open.reset();
  return stop;
}

void report_memory(RankContext& rank, Run& run) {
  const auto all = gather_memory(memory_of(rank, run.config.model.num_layers), rank);
  if (rank.rank == 0) run.log.memory(memory_report(all, process_memory()));
}

}  // namespace

void write_trace(Run& run) {
  if (run.trace == nullptr) return;
  for (size_t rank = 0; rank < run.timelines.size(); ++rank)
    run.trace->write(static_cast<int64_t>(rank), run.timelines[rank].take());
}

void train_rank(RankContext& rank, Run& run) {
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
  if (run.start.checkpoint) restore(trainer, rank, run);
  if (run.config.run.skip_train) {
    validate(trainer, rank, run);
    return test(trainer, rank, run);
  }
  const int64_t iterations = run.config.run.train_iters;
  if (trainer.position().iteration >= iterations) {
    if (rank.rank == 0)
      run.log.print(fmt::format("{} steps are done and train_iters is {}: nothing is left to train",
                                trainer.position().iteration, iterations));
    return;
  }
  StopReason stop = StopReason::kNone;
  std::optional<DoneStep> open;
  while (trainer.position().iteration < iterations && stop == StopReason::kNone) {
    stop = run.config.pipeline.post_validation ? train_step_ahead(trainer, rank, run, open)
                                               : train_step(trainer, rank, run);
    const int64_t iteration = trainer.position().iteration;
    if (run.data.valid && validates_after(iteration, stop, run.config.run))
      validate(trainer, rank, run);
    if (run.data.valid && is_validation_due(iteration, run.config.run)) trainer.pass_validation();
    if (saves_after(iteration, stop, run.config)) save_run(trainer, rank, run);
  }
  if (stop == StopReason::kNone) test(trainer, rank, run);
  report_memory(rank, run);
}

}  // namespace sevenfold

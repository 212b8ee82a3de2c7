#include "sevenfold/train/train.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/bigram.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/limits.h"
#include "sevenfold/train/rank_run.h"
#include "sevenfold/train/run_start.h"

namespace sevenfold {
namespace {

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
  RunStart start = find_start(config, options);
  if (!start.notice.empty()) fmt::print("notice: {}\n", start.notice);
  const RunDirectory directory = RunDirectory::open(config.run.directory, options.resume);
  check_is_newest(start, config);
  if (!start.resumes) directory.remove_earlier_results();
  directory.write_resolved_config(config.resolved_yaml);
  const int threads =
      options.threads_per_rank > 0 ? options.threads_per_rank : default_threads(config.mesh);
  print_banner(config, directory, threads);

  if (outcome.bigram_cross_entropy)
    fmt::print("bigram cross entropy of the validation split: {:.6f} nats per token\n",
               *outcome.bigram_cross_entropy);
  const StopSignals signals;
  RunLog log(config, directory, options.peak_tflops, start.resumes ? start.iteration() : 0);
  const auto ranks = static_cast<size_t>(config.mesh.world_size());
  std::vector<Timeline> timelines(options.trace ? ranks : 0);
  std::optional<TraceFile> trace;
  if (options.trace) trace.emplace(directory.path() / "trace.json", config.mesh.world_size());
  Run run{config,        options, data,
          train_samples, tables,  timelines,
          signals,       log,     trace ? &*trace : nullptr,
          outcome,       start};
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

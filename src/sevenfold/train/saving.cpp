#include "sevenfold/train/saving.h"

#include <ATen/ATen.h>

#include <chrono>

#include "sevenfold/checkpoint/save.h"

namespace sevenfold {
namespace {

int64_t bytes_of_all(const std::vector<TensorPart>& parts, RankContext& rank) {
  double bytes = 0.0;
  for (const TensorPart& part : parts) bytes += static_cast<double>(part.values.nbytes());
  const at::Tensor sum = at::full({1}, bytes, at::TensorOptions().dtype(at::kDouble));
  rank.group("world").all_reduce(sum).wait();
  return static_cast<int64_t>(sum.item<double>());
}

}  // namespace

std::string_view optimizer_name(const OptimizerConfig& config) {
  if (config.kind == OptimizerKind::kAdamW) return "adamw";
  return config.sgd_momentum == 0.0 ? "sgd without momentum" : "sgd";
}

bool saves_after(int64_t iteration, StopReason stop, const Config& config) {
  if (config.checkpoint.save_directory.empty()) return false;
  if (iteration % config.checkpoint.interval == 0 || stop != StopReason::kNone) return true;
  return config.checkpoint.saves_last && iteration == config.run.train_iters;
}

SavedCheckpoint save(const RankTrainer& trainer, const Config& config, RankContext& rank) {
  const auto start = std::chrono::steady_clock::now();
  const bool with_states = config.checkpoint.saves_optimizer;
  const std::vector<TensorPart> parts = trainer.saved_parts(with_states);
  SavedCheckpoint saved;
  saved.bytes = bytes_of_all(parts, rank);
  saved.folder = save_checkpoint(
      config.checkpoint.save_directory,
      {.run = trainer.run_state(),
       .optimizer = with_states ? std::string(optimizer_name(config.optimizer)) : "",
       .configuration = config.resolved_yaml},
      parts,
      {.keep_latest = config.checkpoint.keep_latest,
       .retain_interval = config.checkpoint.retain_interval},
      rank);
  saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return saved;
}

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <string_view>

#include "sevenfold/config/config.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/stop_rule.h"

namespace sevenfold {

// Whose states a checkpoint holds: "adamw", "sgd", or "sgd without momentum", which keeps none.
std::string_view optimizer_name(const OptimizerConfig& config);

// Whether a checkpoint follows a step: at the interval, after the last one, and when something ends
// the run before that, so that nothing is lost.
bool saves_after(int64_t iteration, StopReason stop, const Config& config);

struct SavedCheckpoint {
  std::filesystem::path folder;
  int64_t bytes = 0;  // of tensors, of all ranks
  double seconds = 0.0;
};
// Collective over all ranks; returns when the files are durable.
SavedCheckpoint save(const RankTrainer& trainer, const Config& config, RankContext& rank);

}  // namespace sevenfold

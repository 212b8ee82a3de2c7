#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sevenfold/checkpoint/checkpoint.h"
#include "sevenfold/config/config.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/train.h"

namespace sevenfold {

// What a run begins from.
struct RunStart {
  std::optional<Checkpoint> checkpoint;  // none: start weights
  RestoreOptions restores;
  // Goes on with the run that wrote it, in its folder or elsewhere: results up to that step stay.
  bool resumes = false;
  std::string notice;  // what the run that goes on does otherwise than before; empty: nothing

  int64_t iteration() const;  // steps done
};

// Resuming (--resume, or the newest checkpoint of the run's folder) goes before `load`; then start
// weights. Opens the checkpoint, reads all of it once and compares it with the model, so that a run
// that cannot begin has written nothing. Throws ConfigError or DataError.
RunStart find_start(const Config& config, const TrainOptions& options);

// Throws ConfigError where the run's folder holds checkpoints of later steps: the run would take
// these steps again, and theirs would stand there from another past. Once the folder is locked, as
// its last run may have ended while the checkpoint was read.
void check_is_newest(const RunStart& start, const Config& config);

// Where the checkpoints of the run are, whether it saves any or not.
std::filesystem::path checkpoint_folder(const Config& config);

}  // namespace sevenfold

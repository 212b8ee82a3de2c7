#pragma once

#include <map>
#include <optional>
#include <string>

#include "sevenfold/config/config.h"
#include "sevenfold/config/yaml/value.h"

namespace sevenfold::config {

// The top-level `sevenfold:` block, which Primus ignores.
struct SevenfoldBlock {
  std::optional<int64_t> ranks;
  std::optional<std::string> backend;
  std::optional<std::string> device;
  std::optional<std::string> precision;
  std::optional<std::string> start;
  std::optional<std::string> schedule;       // a name of schedule/algorithms.h
  std::optional<std::string> schedule_file;  // a table of PyTorch's form (schedule/csv.h)
  std::optional<int64_t> eod_token_id;
  std::optional<int64_t> pad_token_id;
  std::optional<std::string> checkpoint_folder;  // inside the run's directory
  std::optional<int64_t> keep_checkpoints;       // how many of the newest stay; 0: all
  bool shuffle = true;
  std::optional<bool> decay_all;  // whether weight decay is of norm gains and biases too
  std::optional<PrepareConfig> prepare;
  Value written;  // the block itself, for origins
  // Of members that stand for a key of the module: "run.yaml:3 KEY=VALUE".
  std::map<std::string, std::string> wheres;

  // "run.yaml:3 sevenfold.ranks=4".
  std::string where(const std::string& key) const;
};

// Throws ConfigError for an unknown key or a value of the wrong type.
SevenfoldBlock read_sevenfold_block(const Value& block);

}  // namespace sevenfold::config

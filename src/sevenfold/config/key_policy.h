#pragma once

#include "sevenfold/config/config.h"
#include "sevenfold/config/experiment.h"

namespace sevenfold::config {

struct KeyReport {
  KeyCounts counts;
  std::vector<KeyNote> ignored;
  std::vector<KeyNote> unknown;
};

// Names of all keys that the experiment (not a preset) sets: a likely misspelling is a ConfigError
// with the suggestion, another unknown key is listed, or an error if `strict`.
KeyReport check_keys(const Experiment& experiment, bool strict);

}  // namespace sevenfold::config

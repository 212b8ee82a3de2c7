#pragma once

#include <string>
#include <vector>

#include "sevenfold/config/yaml/parse.h"

namespace sevenfold::config {

struct ExperimentOptions {
  std::string file;
  std::vector<std::string> overrides;  // key=value
  std::string presets_directory;       // empty: the built-in presets
  Environment environment;             // empty: the environment of this process
};

// An experiment file after extends, interpolation, presets, precedence and key=value; before
// coercion, rules and fix-ups.
struct Experiment {
  std::string file;
  std::string module;     // "pre_trainer"
  std::string framework;  // "megatron" or "torchtitan"
  Value top;              // the file's own top-level keys, without `modules` and `sevenfold`
  Value module_keys;      // the module's keys as written, for the key policy
  Value parameters;       // of the module: what `config --raw` prints
  Value sevenfold;        // the top-level block, a map
  Value platform;
  std::vector<std::string> notices;
};

// `environment`, or that of this process if it is empty.
Environment or_process_environment(Environment environment);

// Throws ConfigError (file, line, key, value, what is wrong, way out).
Experiment load_experiment(const ExperimentOptions& options);

}  // namespace sevenfold::config

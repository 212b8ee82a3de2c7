#pragma once

#include <CLI/CLI.hpp>

#include "sevenfold/config/load.h"
#include "sevenfold/core/faults.h"

namespace sevenfold::apps {

// The options that name an experiment, shared by train and verify: FILE, key=value, --ranks,
// --presets, ...
struct ExperimentOptions {
  LoadOptions load;
  void add_to(CLI::App& command);
};

// A variable of this process's environment.
std::optional<std::string> read_environment(const std::string& name);
// SEVENFOLD_FAULTS; warns loudly on stderr when any is set.
FaultSet planted_faults();

// Loads the file and prints notices and key counts to `out`. Throws ConfigError naming the first
// value that is not supported, leaving out the keys of `allowed`; a refusal stands alone, without
// the notices.
Config load_supported(const LoadOptions& options, std::FILE* out,
                      const std::vector<std::string>& allowed = {});

}  // namespace sevenfold::apps

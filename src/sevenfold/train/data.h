#pragma once

#include <functional>

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/data_sources.h"

namespace sevenfold {

// Says one line about long work (tokenizing a file); `fraction` in 0..1.
using DataProgress = std::function<void(const std::string& what, double fraction)>;

// Opens the training (and, where the run validates, the validation) samples of an experiment. Runs
// `data prepare` first when the file has a `sevenfold.prepare` block and its output does not exist.
// Throws ConfigError or DataError before anything of the run is written.
DataSources open_run_data(const Config& config, const DataProgress& progress = {});

// Whether the run evaluates at all.
bool validates(const RunConfig& run);

}  // namespace sevenfold

#pragma once

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/data_sources.h"

namespace sevenfold {

// Opens the training (and, where the run validates, the validation) samples of an experiment. Runs
// `data prepare` first when the file has a `sevenfold.prepare` block and its output does not exist,
// with a line of progress on stderr; SIGINT and SIGTERM then end it with nothing left behind
// (Error). Throws ConfigError or DataError before anything of the run is written.
DataSources open_run_data(const Config& config);

// Whether the run evaluates at all.
bool validates(const RunConfig& run);

}  // namespace sevenfold

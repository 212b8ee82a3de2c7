#pragma once

#include <string>

#include "sevenfold/config/load.h"

namespace sevenfold::cli {

// `text` as one word of a POSIX shell: in quotes where it needs them. Control characters take
// bash's
// $'...' form, so that a command stays on its line.
std::string shell_word(const std::string& text);

// The words of a command line that load the same experiment: file, key=value, --presets, --strict.
std::string experiment_words(const LoadOptions& options);

}  // namespace sevenfold::cli

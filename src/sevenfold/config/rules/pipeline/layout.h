#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sevenfold/config/yaml/value.h"

namespace sevenfold::config {

// Stages of a pipeline_model_parallel_layout, each a word of the letters E (embedding), t (decoder
// layer), m (multi-token prediction) and L (loss): "Et*2|(t|)*2,L" is {"Ett", "t", "t", "L"}. A
// list of lists of names (embedding, decoder, mtp, loss) is read too. Nothing if `value` is
// neither, or longer than any model.
std::optional<std::vector<std::string>> read_pipeline_layout(const Value& value);

}  // namespace sevenfold::config

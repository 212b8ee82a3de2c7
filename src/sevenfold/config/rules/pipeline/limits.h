#pragma once

#include "sevenfold/config/config.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/config/rules/pipeline/selection.h"

namespace sevenfold::config {

// Checks the keys of costs, memory and groups, and fills those that belong to the selected
// schedule into `pipeline`.
void resolve_limits(Parameters& parameters, const Selection& selection, int64_t pp,
                    PipelineConfig& pipeline);

}  // namespace sevenfold::config

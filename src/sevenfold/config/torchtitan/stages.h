#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sevenfold/config/parameters.h"

namespace sevenfold::config {

// Layers of every stage in the order of the model; the first also has the embedding, the last norm
// and output.
struct StageSizes {
  std::vector<int64_t> layers;
  const char* key = "";  // that makes the number of stages
  std::string where;     // "run.yaml:31 parallelism.pipeline_parallel_layers_per_stage=4"
};

// TorchTitan's cut of `num_layers` layers: as parallelism.module_fqns_per_model_part lists them,
// else into stages of pipeline_parallel_layers_per_stage layers, else into `usual` stages;
// embedding and output count as the layers that pipeline_parallel_first_stage_less_layers and
// ..last_stage_less_layers say. Throws RuleError.
StageSizes stage_sizes(const Parameters& own, int64_t num_layers, int64_t usual);

}  // namespace sevenfold::config

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sevenfold/dist/rank_context.h"

namespace sevenfold {

using CategoryBytes = std::array<int64_t, kNumMemoryCategories>;  // indexed by MemoryCategory

// Tensor memory of one rank.
struct RankMemory {
  int64_t rank = 0;
  int64_t stage = 0;         // of the pipeline
  CategoryBytes boundary{};  // live now: between two steps
  CategoryBytes peak{};      // at the moment of the greatest sum since the run began
  std::string peak_moment;   // what the rank did then: "backward of micro batch 3, layer 5"
};

// Of the process that the ranks are threads of, in bytes: what the system has given it, now and at
// most. 0 where the system does not say.
struct ProcessMemory {
  int64_t resident = 0;
  int64_t most_resident = 0;
};

// "backward of micro batch 3, layer 5": layers are numbered as recompute_layer_ids numbers them.
std::string describe_moment(const WorkMoment& moment, int64_t num_layers);

// Of this rank, now. num_layers: of the model.
RankMemory memory_of(const RankContext& rank, int64_t num_layers);
// Everybody's, by rank. Collective over all ranks.
std::vector<RankMemory> gather_memory(const RankMemory& mine, const RankContext& rank);
// Of each stage in turn the rank with the highest peak, the first of equals.
std::vector<RankMemory> fullest_of_stages(const std::vector<RankMemory>& all);
ProcessMemory process_memory();

// What a run tells of its memory at its end.
struct MemoryReport {
  std::vector<RankMemory> stages;  // fullest_of_stages
  ProcessMemory process;
  // Resident memory that no rank's tensors account for: code, libraries, token files that are
  // mapped, freed blocks that the allocator keeps for the next step.
  int64_t rest = 0;
};
MemoryReport memory_report(const std::vector<RankMemory>& all, const ProcessMemory& process);

// Lines without line ends.
std::vector<std::string> to_lines(const MemoryReport& report);
// One JSON document: {"stages":[{"stage":..,"rank":..,"step_boundary":{"total":..,"parameters":..,
// ..},"peak":{..},"peak_moment":".."}],"process":{"resident":..,"most_resident":..,"rest":..}},
// bytes.
std::string to_json(const MemoryReport& report);

}  // namespace sevenfold

#pragma once

#include <optional>
#include <string>

#include "sevenfold/config/parameters.h"
#include "sevenfold/config/sevenfold_block.h"
#include "sevenfold/schedule/algorithms.h"

namespace sevenfold::config {

// Whose keys name the schedule.
enum class ScheduleSource : uint8_t {
  kMegatron,    // none: Megatron's own, which follows from the pieces of a rank
  kPrimus,      // patch_primus_pipeline with pp_algorithm
  kZeroBubble,  // patch_zero_bubble with its own keys
  kSevenfold,   // sevenfold.schedule or sevenfold.schedule_file
};

struct Selection {
  ScheduleSource source = ScheduleSource::kMegatron;
  const Algorithm* algorithm = nullptr;  // null: Megatron's own, or a file
  std::optional<Schedule> table;         // of sevenfold.schedule_file
  std::string where;                     // "run.yaml:31 pp_algorithm=v-half"; empty: no key
  bool sets_pieces = false;              // a rank's pieces follow from it where no key says
};

// sevenfold.schedule or .schedule_file, else patch_zero_bubble, else patch_primus_pipeline. Reads
// the file.
Selection select_schedule(const Parameters& parameters, const SevenfoldBlock& block, int64_t pp);

// Throws RuleError unless `algorithm`, which `where` asks for, takes this many pieces of a rank.
void check_pieces(const Algorithm& algorithm, const std::string& where, int64_t pieces);

// The table in sevenfold.schedule_file.
Schedule read_schedule_file(const SevenfoldBlock& block);

}  // namespace sevenfold::config

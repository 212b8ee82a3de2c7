#pragma once

#include <string>

#include "sevenfold/config/parameters.h"
#include "sevenfold/config/sevenfold_block.h"
#include "sevenfold/schedule/algorithms.h"

namespace sevenfold::config {

// The schedule that the keys name, and where they do.
struct Selection {
  const Algorithm* algorithm = nullptr;  // null: Megatron's own, which follows from the pieces
  std::string where;                     // "run.yaml:31 pp_algorithm=v-half"; empty: no key
  bool sets_pieces = false;              // a rank's pieces follow from the algorithm
};

Selection select_schedule(const Parameters& parameters);

// Throws RuleError if the algorithm does not take this many pieces of a rank.
void check_pieces(const Selection& selection, int64_t pieces);

}  // namespace sevenfold::config

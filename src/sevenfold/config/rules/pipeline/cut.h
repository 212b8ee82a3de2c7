#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold::config {

// Into what the layers are cut, and on which rank each piece lies.
struct CutShape {
  int64_t pp = 1;
  int64_t pieces = 1;  // of a rank; 1 in a bidirectional placement, whose twins are one piece twice
  Placement placement = Placement::kLoop;

  int64_t num_stages() const { return pp * pieces; }
};

// Rules between the keys that cut the layers, whatever the numbers.
void check_cut_keys(const Parameters& parameters, int64_t pp);

// Pieces of a rank that the keys ask for, at least 1; nothing if no key says.
std::optional<int64_t> pieces_asked(const Parameters& parameters, int64_t pp);

// The stages in the order of the model; throws RuleError if the keys and num_layers, which is at
// least 1, do not fit together.
std::vector<StageLayers> cut_layers(const Parameters& parameters, const CutShape& shape);

}  // namespace sevenfold::config

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// What goes from one rank to another between two passes.
struct Transfer {
  bool is_gradient = false;  // else the output of a forward
  int64_t from_stage = 0;
  int64_t to_stage = 0;
  int64_t microbatch = 0;
  int64_t flow = 0;
};

// An entry of a rank's list with the sends and receives that its rows imply.
struct Action {
  enum class Kind : uint8_t { kCompute, kSend, kReceive };
  Kind kind = Kind::kCompute;
  size_t position = 0;     // kCompute: index into the rank's rows
  int64_t peer = 0;        // kSend, kReceive: the other rank
  Transfer transfer = {};  // kSend, kReceive
};

// Per rank its rows with sends and receives between them. Every rank's list is cut out of one order
// of all rows and transfers, in which a transfer comes when its producer ends (all passes taking
// one unit of time). So the lists finish even when a send blocks until its receive is posted and a
// receive until its message is there: of the entries that have not run, the first in that order can
// run. A receive may be posted earlier than its place, and need only have finished before the row
// that uses it, and the sends of a rank to one peer arrive in the order of that peer's receives.
// Needs a schedule whose replay finishes.
std::vector<std::vector<Action>> actions_of(const Schedule& schedule);

// Runs the lists with sends that block until matched. Nothing if all entries ran, else a sentence
// on the ranks that wait for each other.
std::optional<std::string> find_deadlock(const Schedule& schedule,
                                         const std::vector<std::vector<Action>>& actions);

}  // namespace sevenfold

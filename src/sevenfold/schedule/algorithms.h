#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/request.h"

namespace sevenfold {

// An algorithm that makes schedules: a row of the table of algorithms.
struct Algorithm {
  const char* name;
  // The names of Primus (pp_algorithm and its projection tool), TorchTitan and PyTorch,
  // comma-separated.
  const char* aliases;
  Placement placement;
  // Chunks per rank that it takes, and its own choice.
  int64_t min_chunks;
  int64_t max_chunks;
  int64_t default_chunks;
  bool splits_backward;  // B and W apart
  bool takes_groups;     // looks at ScheduleRequest::group_size
  bool chooses;          // takes the table of another algorithm
  Schedule (*generate)(const ScheduleRequest&);
  const char* summary;
};

const std::vector<Algorithm>& algorithms();

// By name or alias, whatever the case, with or without PyTorch's "Schedule" before it; null if
// there is none.
const Algorithm* look_up_algorithm(std::string_view name);
// "use v-half or v-min; there are gpipe, ...": the way out for a name that is not there.
std::string algorithms_near(std::string_view name);
// As look_up_algorithm; throws ConfigError with the nearest names.
const Algorithm& find_algorithm(std::string_view name);

// The algorithm's schedule for the request, checked: complete, in order, live, within
// request.max_memory. Throws ConfigError if the algorithm has no schedule for these numbers.
Schedule generate(std::string_view algorithm, ScheduleRequest request);

// The same without a word: nothing if the algorithm has no schedule for these numbers, or none that
// fits.
std::optional<Schedule> try_generate(const Algorithm& algorithm, const ScheduleRequest& request);

}  // namespace sevenfold

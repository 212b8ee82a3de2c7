#pragma once

#include <vector>

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/request.h"

namespace sevenfold {

// The schedule of the shortest makespan (without a barrier: of the shortest longest rank) among all
// algorithms that keep one copy of the weights and fit request.max_memory, the searches included;
// of equal ones the one with less memory, then fewer chunks. request.num_chunks of 0 leaves their
// number open: 2 or 4 for loops. The result bears its algorithm's name. Throws ConfigError if
// nothing fits.
Schedule shortest_schedule(const ScheduleRequest& request);

}  // namespace sevenfold

#pragma once

#include <cstddef>
#include <cstdint>

#include "sevenfold/schedule/request.h"

namespace sevenfold {

// F, B and W all take `time`.
ScheduleRequest request_of(int64_t ranks, int64_t microbatches, double time, double link,
                           double limit);

// Makespan of a schedule that is expected to keep the limit and one copy of the weights.
double makespan_within(const char* algorithm, const ScheduleRequest& request);

// Every `stride`-th row of the oracle that takes a search: longest rank, or makespan, and peak no
// worse.
void expect_zbv_rows(size_t stride);
void expect_adaptive_rows(size_t stride);
void expect_1f1b_v_rows(size_t stride);

}  // namespace sevenfold

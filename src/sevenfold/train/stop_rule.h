#pragma once

#include <cstdint>
#include <string>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Why a run ends before its last step. Rank 0 decides, and tells the others by number.
enum class StopReason : uint8_t { kNone, kSignal, kExitInterval, kExitDuration };

// Whether the run is stopped after `iteration`, `running_s` seconds after its start; its last step
// is no stop.
StopReason stop_after(const RunConfig& run, int64_t iteration, double running_s, bool is_signalled);

// "stopped after iteration 7: exit_interval=7"; empty for kNone.
std::string describe_stop(StopReason reason, int64_t iteration, const RunConfig& run);

}  // namespace sevenfold

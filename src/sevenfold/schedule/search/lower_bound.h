#pragma once

#include "sevenfold/schedule/search/justify.h"

namespace sevenfold {

// A time that no order of the problem beats, whatever its memory: a rank works through its passes,
// the first of which waits for the forwards before it; and a micro batch goes through all its
// passes.
double lower_bound(const PassProblem& problem, Objective objective);

}  // namespace sevenfold

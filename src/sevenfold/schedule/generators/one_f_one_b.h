#pragma once

#include "sevenfold/schedule/ir.h"

namespace sevenfold {

// 1F1B: stage s of P runs min(P - 1 - s, M) forwards, then one forward and one backward in turn,
// then the backwards that are left. With P = 1 this is plain gradient accumulation, one micro batch
// alive at a time. Source: Narayanan et al. 2019 (PipeDream), "one-forward-one-backward" in the
// flushing form.
Schedule one_f_one_b(int64_t num_stages, int64_t num_microbatches);

}  // namespace sevenfold

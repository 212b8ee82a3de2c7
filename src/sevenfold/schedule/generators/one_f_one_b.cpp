#include "sevenfold/schedule/generators/one_f_one_b.h"

#include <algorithm>

#include "sevenfold/core/error.h"

namespace sevenfold {

Schedule one_f_one_b(int64_t num_stages, int64_t num_microbatches) {
  SEVENFOLD_CHECK(num_stages > 0 && num_microbatches > 0);
  Schedule schedule{"1f1b", num_stages, num_microbatches, {}};
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    const int64_t warmup = std::min(num_stages - 1 - stage, num_microbatches);
    std::vector<Row> rows;
    for (int64_t step = 0; step < num_microbatches + warmup; ++step) {
      if (step < num_microbatches)
        rows.push_back({.op = Op::kForward, .stage = stage, .microbatch = step});
      if (step >= warmup)
        rows.push_back({.op = Op::kBackward, .stage = stage, .microbatch = step - warmup});
    }
    schedule.rows.push_back(std::move(rows));
  }
  return schedule;
}

}  // namespace sevenfold

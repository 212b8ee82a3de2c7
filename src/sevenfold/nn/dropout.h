#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/core/faults.h"
#include "sevenfold/core/philox.h"

namespace sevenfold {

// Dropout of one operation of one layer: an element becomes 0 with probability `rate`, or is
// multiplied by 1 / (1 - rate). Which ones is a function of global coordinates (core/philox.h), so
// nothing is kept for backward: the mask is drawn again. Source: Srivastava et al. 2014.
struct Dropout {
  double rate = 0.0;  // at least 0, below 1; drawn in steps of 2^-32
  RandomSite site;    // head: the first of those that the rank holds
  FaultSet faults;
};

// Where a rank's slice of a tensor begins, in uncut sequences and whole hidden states.
struct DropoutOffset {
  int64_t position = 0;
  int64_t column = 0;
};

// Dropout of x [B, T, columns]. sample_ids [B]: place of each row's sample in the stream of
// consumed samples. `dropout` outlives the graph.
at::Tensor dropout(const at::Tensor& x, const Dropout& dropout,
                   const std::vector<int64_t>& sample_ids, DropoutOffset offset = {});

// The masks of one head of an operation, row by row.
class DropoutMask {
 public:
  // head: counted from that of the dropout's site. redrawn: by a backward pass.
  DropoutMask(const Dropout& dropout, int64_t head, bool redrawn);

  // Multiplies row[i] by the mask of (sample, position, first_column + i), 0 or 1 / (1 - rate).
  template <typename T>
  void apply(T* row, int64_t count, int64_t sample, int64_t position, int64_t first_column) const;

 private:
  RandomStream stream_;
  uint32_t dropped_below_;  // numbers below this drop their element
  double scale_;
};

}  // namespace sevenfold

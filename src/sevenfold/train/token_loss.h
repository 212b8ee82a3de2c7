#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/dist/communicator.h"

namespace sevenfold {

// A loss as sum over tokens and their number, the two kept apart until all parts are in: a mean of
// means would weigh a token by how few others its batch has.
struct TokenLoss {
  double sum = 0.0;
  double tokens = 0.0;

  // Of all ranks, the same on all: sums are added over `parts` (dp-cp, whose members each have a
  // part of the loss), tokens over `samples` (dp, whose members read different samples: tokens are
  // counted on uncut sequences). Collective.
  TokenLoss over(Communicator& parts, Communicator& samples) const;
  // 0 without tokens.
  double mean() const;
};

}  // namespace sevenfold

#pragma once

#include <optional>

#include "sevenfold/schedule/search/problem.h"

namespace sevenfold {

// In its middle a good order is periodic: there is a span of time in which every rank starts each
// of its passes for one micro batch, no matter which. What starts in that span, repeated or left
// out, gives an order for more or fewer micro batches: where it begins and where it ends, every
// rank stands at the same place but for one micro batch. It finishes, holds no more memory, and
// costs the length of the span per micro batch.
//
// `order` of `core` so stretched, or shortened, to the micro batches of `wanted`, the same problem
// with another number of them; of several such spans the one that makes it shortest. Nothing if the
// order does not finish, has no such span, or the span is to be left out more than once.
std::optional<PassOrder> stretched(const PassProblem& core, const PassOrder& order,
                                   const PassProblem& wanted);

}  // namespace sevenfold

#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/param/parameter.h"

namespace sevenfold {

// Learned positions: adds row `position` of the table to each token. x [B, T, D], table [P, D] with
// every position below P; positions [B, T] int64, undefined: first .. first + T - 1 in every row.
// The table's gradient is added to the parameter when backward runs. Source: Vaswani et al. 2017,
// Radford et al. 2018.
at::Tensor add_position_embedding(const at::Tensor& x, const Parameter& table,
                                  const at::Tensor& positions, int64_t first = 0);

}  // namespace sevenfold

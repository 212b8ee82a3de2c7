#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/param/parameter.h"

namespace sevenfold {

// Rows of the table: tokens [B, T] int64, table [V, D], result [B, T, D]. Tokens carry no gradient,
// so the graph hangs on `anchor` [1], which must require one; its gradient is zero. The table's
// gradient is added to the parameter in token order.
// first_row: of the vocabulary, where this rank holds a part of the table's rows; the rows of
// tokens that others hold are zero.
at::Tensor embedding(const at::Tensor& tokens, const at::Tensor& anchor, const Parameter& table,
                     int64_t first_row = 0);

}  // namespace sevenfold

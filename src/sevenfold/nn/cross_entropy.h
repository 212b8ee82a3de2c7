#pragma once

#include <ATen/core/Tensor.h>

namespace sevenfold {

// Sum over unmasked tokens of logsumexp(logits) - logits[label], a scalar in fp64 whatever the
// logits' type. logits [N, V], labels [N] int64, mask [N] fp32 (fp64 for fp64 logits; 1 trained, 0
// not). The caller seeds the backward pass with 1 / (unmasked tokens of the global batch): no mean
// is taken here.
// Backward writes the gradient over the logits (unless they are a leaf), so that there is no second
// [N, V]: nobody else may read them by then, and it runs once.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             const at::Tensor& mask);

}  // namespace sevenfold

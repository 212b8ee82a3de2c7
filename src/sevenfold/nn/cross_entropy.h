#pragma once

#include <ATen/core/Tensor.h>

namespace sevenfold {

// Sum over unmasked tokens of logsumexp(logits) - logits[label], a scalar in fp64 whatever the
// logits' type. logits [N, V], labels [N] int64, mask [N] of the logits' type (1 trained, 0 not).
// The caller seeds the backward pass with 1 / (unmasked tokens of the global batch): no mean is
// taken here.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             const at::Tensor& mask);

}  // namespace sevenfold

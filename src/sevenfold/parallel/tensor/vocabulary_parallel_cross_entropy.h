#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// Sum over unmasked tokens of logsumexp(logits) - logits[label] where each rank holds the logits of
// its rows of the vocabulary; the logits are never gathered. Every rank gets the same sum.
//
//   logits [N, V_r], columns first_row .. first_row + V_r - 1 of the vocabulary (V_r may be 0);
//   labels [N] int64, of the whole vocabulary;  mask [N];  result: fp64 scalar
//
// Sends two all-reduces: the maxima [N] (fp32; fp64 for fp64 logits), then sums and label logits
// [2, N] in fp64. Backward sends nothing, and writes the gradient over the logits as
// cross_entropy_sum does. Source: Shoeybi et al. 2019, section 3.
//
// padded_rows: of a planted fault, rows of logit 0 that take part in the softmax; else 0.
at::Tensor vocabulary_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                             const at::Tensor& mask, int64_t first_row,
                                             const TensorParallel& tensor, int64_t padded_rows = 0);

}  // namespace sevenfold

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

// The steps of the same where the vocabulary is cut over ranks, without collectives and gradients.
// logits [N, V], this rank's columns (V may be 0); wide: fp32, fp64 for fp64 logits.

// [N] wide: the largest logit of each row; minus infinity without columns.
at::Tensor row_maxima(const at::Tensor& logits);
// [2, N] fp64: the sums of e^(logit - largest) over the columns, then the label's logit, or 0 where
// it is not among the columns. labels [N] count from the first column.
at::Tensor exponential_sums(const at::Tensor& logits, const at::Tensor& labels,
                            const at::Tensor& largest);

// Per row, [N] wide: softmax = e^(logit - largest) * inverse_sum, gradient = (softmax - one hot
// label) * scale.
struct SoftmaxRows {
  at::Tensor largest, inverse_sum, scale;
};
// d_logits [N, V] may be the memory of logits.
void write_logit_gradient(const at::Tensor& d_logits, const at::Tensor& logits,
                          const at::Tensor& labels, const SoftmaxRows& rows);

}  // namespace sevenfold

#pragma once

#include <cstdint>

namespace sevenfold::kernels {

// Softmax of blocks of attention scores, A = float or double. Scores [rows, width], contiguous; a
// row sees the columns first .. end-1 of its range (at least one), and all others become 0.

struct KeyRange {
  int64_t first;
  int64_t end;
};

// scores = softmax(scores * scale); log_sum[row] = log(sum of e^(score * scale)).
template <typename A>
void softmax_forward(A* scores, const KeyRange* ranges, int64_t rows, int64_t width, A scale,
                     A* log_sum);
// The same probabilities from what forward kept.
template <typename A>
void softmax_again(A* scores, const KeyRange* ranges, int64_t rows, int64_t width, A scale,
                   const A* log_sum);
// d = softmax * (d - row_dot) * scale: the gradient of the scores from that of the probabilities.
// row_dot [rows]: sum over the row of d * softmax.
template <typename A>
void softmax_backward(A* d, const A* softmax, const A* row_dot, int64_t rows, int64_t width,
                      A scale);

// dots[row] = sum over i < size of x[row][i] * y[row][i]; rows `stride` elements apart.
template <typename A>
void row_dots(const A* x, const A* y, int64_t rows, int64_t stride, int64_t size, A* dots);

}  // namespace sevenfold::kernels

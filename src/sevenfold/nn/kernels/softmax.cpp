#include "sevenfold/nn/kernels/softmax.h"

#include <cmath>
#include <limits>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/core/vector_math.h"

namespace sevenfold::kernels {
namespace {

template <typename A>
[[gnu::always_inline]] inline void clear_outside(A* scores, KeyRange range, int64_t width) {
  for (int64_t i = 0; i < range.first; ++i) scores[i] = A(0);
  for (int64_t i = range.end; i < width; ++i) scores[i] = A(0);
}

// Returns the logarithm of the row's sum.
template <typename A>
[[gnu::always_inline]] inline A softmax_row(A* scores, int64_t count, A scale) {
  const A top =
      scale *
      lane_max<A>(
          count,
          -std::numeric_limits<A>::infinity(), [=](int64_t i) __attribute__((always_inline)) {
            return scores[i];
          });
  for (int64_t i = 0; i < count; ++i) scores[i] = exponential(scores[i] * scale - top);
  const A sum = lane_sum<A>(
      count, [=](int64_t i) __attribute__((always_inline)) { return scores[i]; });
  const A inverse = A(1) / sum;
  for (int64_t i = 0; i < count; ++i) scores[i] *= inverse;
  return top + std::log(sum);
}

template <typename A>
[[gnu::always_inline]] inline void softmax_row_again(A* scores, int64_t count, A scale, A log_sum) {
  for (int64_t i = 0; i < count; ++i) scores[i] = exponential(scores[i] * scale - log_sum);
}

template <typename A>
[[gnu::always_inline]] inline void backward_row(A* __restrict d, const A* __restrict softmax,
                                                A row_dot, int64_t width, A scale) {
  for (int64_t i = 0; i < width; ++i) d[i] = softmax[i] * (d[i] - row_dot) * scale;
}

}  // namespace

template <typename A>
void softmax_forward(A* scores, const KeyRange* ranges, int64_t rows, int64_t width, A scale,
                     A* log_sum) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row) {
      const KeyRange range = ranges[row];
      clear_outside<A>(scores + row * width, range, width);
      log_sum[row] =
          softmax_row<A>(scores + row * width + range.first, range.end - range.first, scale);
    }
  });
}

template <typename A>
void softmax_again(A* scores, const KeyRange* ranges, int64_t rows, int64_t width, A scale,
                   const A* log_sum) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row) {
      const KeyRange range = ranges[row];
      clear_outside<A>(scores + row * width, range, width);
      softmax_row_again<A>(scores + row * width + range.first, range.end - range.first, scale,
                           log_sum[row]);
    }
  });
}

template <typename A>
void softmax_backward(A* d, const A* softmax, const A* row_dot, int64_t rows, int64_t width,
                      A scale) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      backward_row<A>(d + row * width, softmax + row * width, row_dot[row], width, scale);
  });
}

template <typename A>
void row_dots(const A* x, const A* y, int64_t rows, int64_t stride, int64_t size, A* dots) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      dots[row] = lane_sum<A>(
          size, [=](int64_t i) __attribute__((always_inline)) {
            return x[row * stride + i] * y[row * stride + i];
          });
  });
}

#define SEVENFOLD_INSTANTIATE(A)                                                      \
  template void softmax_forward<A>(A*, const KeyRange*, int64_t, int64_t, A, A*);     \
  template void softmax_again<A>(A*, const KeyRange*, int64_t, int64_t, A, const A*); \
  template void softmax_backward<A>(A*, const A*, const A*, int64_t, int64_t, A);     \
  template void row_dots<A>(const A*, const A*, int64_t, int64_t, int64_t, A*);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

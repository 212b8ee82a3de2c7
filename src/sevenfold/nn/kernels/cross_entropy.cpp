#include <cmath>
#include <limits>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/core/vector_math.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold::kernels {
namespace {

// A NaN is passed over by the maximum and comes back with the sum.
template <typename T>
[[gnu::always_inline]] inline Wide<T> row_maximum(const T* __restrict logits, int64_t vocabulary) {
  using A = Wide<T>;
  return lane_max<A>(
      vocabulary,
      -std::numeric_limits<A>::infinity(), [=](int64_t i) __attribute__((always_inline)) {
        return widen(logits[i]);
      });
}

template <typename T>
[[gnu::always_inline]] inline Wide<T> row_sum(const T* __restrict logits, Wide<T> top,
                                              int64_t vocabulary) {
  return lane_sum<Wide<T>>(
      vocabulary, [=](int64_t i) __attribute__((always_inline)) {
        return exponential(widen(logits[i]) - top);
      });
}

template <typename T>
[[gnu::always_inline]] inline double forward_row(const T* __restrict logits, int64_t label,
                                                 Wide<T>* largest, Wide<T>* inverse_sum,
                                                 int64_t vocabulary) {
  using A = Wide<T>;
  const A top = row_maximum<T>(logits, vocabulary);
  const A sum = row_sum<T>(logits, top, vocabulary);
  *largest = top;
  *inverse_sum = A(1) / sum;
  return static_cast<double>(top) - static_cast<double>(widen(logits[label])) +
         std::log(static_cast<double>(sum));
}

// Not __restrict: the gradient may take the place of the logits.
template <typename T>
[[gnu::always_inline]] inline void backward_row(const T* logits, int64_t label, Wide<T> largest,
                                                Wide<T> inverse_sum, Wide<T> scale, T* d_logits,
                                                int64_t vocabulary) {
  using A = Wide<T>;
  const A factor = inverse_sum * scale;
  const bool has_label = 0 <= label && label < vocabulary;
  const A at_label = has_label ? exponential(widen(logits[label]) - largest) * inverse_sum : A(0);
#pragma GCC ivdep  // element i is read before it is written, and nothing else is
  for (int64_t i = 0; i < vocabulary; ++i)
    d_logits[i] = narrow<T>(exponential(widen(logits[i]) - largest) * factor);
  if (has_label) d_logits[label] = narrow<T>((at_label - A(1)) * scale);
}

}  // namespace

template <typename T>
void cross_entropy_forward(const T* logits, const int64_t* labels, double* losses, Wide<T>* largest,
                           Wide<T>* inverse_sum, int64_t rows, int64_t vocabulary) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      losses[row] = forward_row<T>(logits + row * vocabulary, labels[row], largest + row,
                                   inverse_sum + row, vocabulary);
  });
}

template <typename T>
void row_maxima(const T* logits, Wide<T>* largest, int64_t rows, int64_t vocabulary) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      largest[row] = row_maximum<T>(logits + row * vocabulary, vocabulary);
  });
}

template <typename T>
void exponential_sums(const T* logits, const int64_t* labels, const Wide<T>* largest, double* sums,
                      int64_t rows, int64_t vocabulary) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row) {
      const T* at = logits + row * vocabulary;
      const bool has_label = 0 <= labels[row] && labels[row] < vocabulary;
      sums[row] = static_cast<double>(row_sum<T>(at, largest[row], vocabulary));
      sums[rows + row] = has_label ? static_cast<double>(widen(at[labels[row]])) : 0.0;
    }
  });
}

template <typename T>
void cross_entropy_backward(const T* logits, const int64_t* labels, const Wide<T>* largest,
                            const Wide<T>* inverse_sum, const Wide<T>* scale, T* d_logits,
                            int64_t rows, int64_t vocabulary) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row) {
      T* out = d_logits + row * vocabulary;
      if (scale[row] == Wide<T>(0)) {
        for (int64_t i = 0; i < vocabulary; ++i) out[i] = T{};
      } else {
        backward_row<T>(logits + row * vocabulary, labels[row], largest[row], inverse_sum[row],
                        scale[row], out, vocabulary);
      }
    }
  });
}

#define SEVENFOLD_INSTANTIATE(T)                                                                \
  template void cross_entropy_forward<T>(const T*, const int64_t*, double*, Wide<T>*, Wide<T>*, \
                                         int64_t, int64_t);                                     \
  template void row_maxima<T>(const T*, Wide<T>*, int64_t, int64_t);                            \
  template void exponential_sums<T>(const T*, const int64_t*, const Wide<T>*, double*, int64_t, \
                                    int64_t);                                                   \
  template void cross_entropy_backward<T>(const T*, const int64_t*, const Wide<T>*,             \
                                          const Wide<T>*, const Wide<T>*, T*, int64_t, int64_t);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
SEVENFOLD_INSTANTIATE(BFloat16)
SEVENFOLD_INSTANTIATE(Float16)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

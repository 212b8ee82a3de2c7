#include <cmath>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/core/vector_math.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold::kernels {
namespace {

// Two passes: the variance is a mean of squares of differences and cannot cancel.
template <typename T>
[[gnu::always_inline]] inline void forward_row(const T* __restrict x, const T* __restrict gain,
                                               const T* __restrict bias, T* __restrict y,
                                               Wide<T>* mean, Wide<T>* rstd, int64_t dim,
                                               Wide<T> eps) {
  using A = Wide<T>;
  const A count = static_cast<A>(dim);
  const A middle = lane_sum<A>(
                       dim, [=](int64_t i) __attribute__((always_inline)) { return widen(x[i]); }) /
                   count;
  const A square = lane_sum<A>(
      dim, [=](int64_t i) __attribute__((always_inline)) {
        const A difference = widen(x[i]) - middle;
        return difference * difference;
      });
  const A scale = A(1) / std::sqrt(square / count + eps);
  *mean = middle;
  *rstd = scale;
  for (int64_t i = 0; i < dim; ++i)
    y[i] = narrow<T>((widen(x[i]) - middle) * scale * widen(gain[i]) + widen(bias[i]));
}

// With n = (x - mean) * rstd and g = dy * gain: dx = rstd * (g - mean(g) - n * mean(g * n)).
template <typename T>
[[gnu::always_inline]] inline void backward_row(const T* __restrict dy, const T* __restrict x,
                                                const T* __restrict gain, Wide<T> middle,
                                                Wide<T> scale, T* __restrict dx,
                                                Wide<T>* __restrict d_gain,
                                                Wide<T>* __restrict d_bias, int64_t dim) {
  using A = Wide<T>;
  const A count = static_cast<A>(dim);
  const A mean_g = lane_sum<A>(
                       dim, [=
  ](int64_t i) __attribute__((always_inline)) { return widen(dy[i]) * widen(gain[i]); }) /
                   count;
  const A mean_gn = lane_sum<A>(
                        dim,
                        [=](int64_t i) __attribute__((always_inline)) {
                          return widen(dy[i]) * widen(gain[i]) * ((widen(x[i]) - middle) * scale);
                        }) /
                    count;
  for (int64_t i = 0; i < dim; ++i) {
    const A grad = widen(dy[i]), normal = (widen(x[i]) - middle) * scale;
    dx[i] = narrow<T>(scale * (grad * widen(gain[i]) - mean_g - normal * mean_gn));
    d_gain[i] += grad * normal;
    d_bias[i] += grad;
  }
}

}  // namespace

template <typename T>
void layer_norm_forward(const T* x, const T* gain, const T* bias, T* y, Wide<T>* mean,
                        Wide<T>* rstd, int64_t rows, int64_t dim, double eps) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      forward_row<T>(x + row * dim, gain, bias, y + row * dim, mean + row, rstd + row, dim,
                     static_cast<Wide<T>>(eps));
  });
}

template <typename T>
void layer_norm_backward(const T* dy, const T* x, const T* gain, const Wide<T>* mean,
                         const Wide<T>* rstd, T* dx, Wide<T>* d_gain, Wide<T>* d_bias, int64_t rows,
                         int64_t dim) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      backward_row<T>(dy + row * dim, x + row * dim, gain, mean[row], rstd[row], dx + row * dim,
                      d_gain, d_bias, dim);
  });
}

#define SEVENFOLD_INSTANTIATE(T)                                                            \
  template void layer_norm_forward<T>(const T*, const T*, const T*, T*, Wide<T>*, Wide<T>*, \
                                      int64_t, int64_t, double);                            \
  template void layer_norm_backward<T>(const T*, const T*, const T*, const Wide<T>*,        \
                                       const Wide<T>*, T*, Wide<T>*, Wide<T>*, int64_t, int64_t);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
SEVENFOLD_INSTANTIATE(BFloat16)
SEVENFOLD_INSTANTIATE(Float16)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

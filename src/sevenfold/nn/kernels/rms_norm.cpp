#include <cmath>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/core/vector_math.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold::kernels {
namespace {

template <typename T>
[[gnu::always_inline]] inline void forward_row(const T* __restrict x, const T* __restrict gain,
                                               T* __restrict y, Wide<T>* rstd, int64_t dim,
                                               Wide<T> eps) {
  using A = Wide<T>;
  const A square = lane_sum<A>(
      dim, [=](int64_t i) __attribute__((always_inline)) { return widen(x[i]) * widen(x[i]); });
  const A scale = A(1) / std::sqrt(square / static_cast<A>(dim) + eps);
  *rstd = scale;
  for (int64_t i = 0; i < dim; ++i) y[i] = narrow<T>(widen(x[i]) * scale * widen(gain[i]));
}

// With n = x * rstd: dx = rstd * (dy * gain - n * mean(dy * gain * n)).
template <typename T>
[[gnu::always_inline]] inline void backward_row(const T* __restrict dy, const T* __restrict x,
                                                const T* __restrict gain, Wide<T> scale,
                                                T* __restrict dx, Wide<T>* __restrict d_gain,
                                                int64_t dim) {
  using A = Wide<T>;
  const A dot = lane_sum<A>(
      dim, [=](int64_t i) __attribute__((always_inline)) {
        return widen(dy[i]) * widen(gain[i]) * widen(x[i]);
      });
  const A shared = dot * scale * scale / static_cast<A>(dim);
  for (int64_t i = 0; i < dim; ++i) {
    const A grad = widen(dy[i]), value = widen(x[i]);
    dx[i] = narrow<T>(scale * (grad * widen(gain[i]) - value * shared));
    d_gain[i] += grad * value * scale;
  }
}

}  // namespace

template <typename T>
void rms_norm_forward(const T* x, const T* gain, T* y, Wide<T>* rstd, int64_t rows, int64_t dim,
                      double eps) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      forward_row<T>(x + row * dim, gain, y + row * dim, rstd + row, dim,
                     static_cast<Wide<T>>(eps));
  });
}

template <typename T>
void rms_norm_backward(const T* dy, const T* x, const T* gain, const Wide<T>* rstd, T* dx,
                       Wide<T>* d_gain, int64_t rows, int64_t dim) {
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < rows; ++row)
      backward_row<T>(dy + row * dim, x + row * dim, gain, rstd[row], dx + row * dim, d_gain, dim);
  });
}

#define SEVENFOLD_INSTANTIATE(T)                                                                 \
  template void rms_norm_forward<T>(const T*, const T*, T*, Wide<T>*, int64_t, int64_t, double); \
  template void rms_norm_backward<T>(const T*, const T*, const T*, const Wide<T>*, T*, Wide<T>*, \
                                     int64_t, int64_t);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
SEVENFOLD_INSTANTIATE(BFloat16)
SEVENFOLD_INSTANTIATE(Float16)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

#include "sevenfold/nn/kernels.h"

#include <cmath>

namespace sevenfold::kernels {
namespace {

constexpr int64_t kLanes = 8;

// Sum of f(i) for i in [0, n) in kLanes partial sums, added pairwise.
template <typename T, typename F>
inline T lane_sum(int64_t n, const F& f) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  for (; i < n; ++i) lanes[i % kLanes] += f(i);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace

template <typename T>
void rms_norm_forward(const T* x, const T* gain, T* y, T* rstd, int64_t rows, int64_t dim,
                      double eps) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* __restrict in = x + row * dim;
    T* __restrict out = y + row * dim;
    const T square = lane_sum<T>(dim, [in](int64_t i) { return in[i] * in[i]; });
    const T scale = T(1) / std::sqrt(square / static_cast<T>(dim) + static_cast<T>(eps));
    rstd[row] = scale;
    for (int64_t i = 0; i < dim; ++i) out[i] = in[i] * scale * gain[i];
  }
}

template <typename T>
void rms_norm_backward(const T* dy, const T* x, const T* gain, const T* rstd, T* dx, T* d_gain,
                       int64_t rows, int64_t dim) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* __restrict grad = dy + row * dim;
    const T* __restrict in = x + row * dim;
    T* __restrict out = dx + row * dim;
    const T scale = rstd[row];
    // With n = x * rstd: dx = rstd * (dy * gain - n * mean(dy * gain * n)).
    const T dot = lane_sum<T>(dim, [=](int64_t i) { return grad[i] * gain[i] * in[i]; });
    const T shared = dot * scale * scale / static_cast<T>(dim);
    for (int64_t i = 0; i < dim; ++i) {
      out[i] = scale * (grad[i] * gain[i] - in[i] * shared);
      d_gain[i] += grad[i] * in[i] * scale;
    }
  }
}

template <typename T>
void rotate(const T* x, const T* cos, const T* sin, T* y, int64_t batch, int64_t length,
            int64_t heads, int64_t size, int64_t rotary, T direction) {
  const int64_t half = rotary / 2;
  for (int64_t row = 0; row < batch * length * heads; ++row) {
    const int64_t position = row / heads % length;
    const T* __restrict c = cos + position * half;
    const T* __restrict s = sin + position * half;
    const T* __restrict in = x + row * size;
    T* __restrict out = y + row * size;
    for (int64_t i = 0; i < half; ++i) {
      const T a = in[i];
      const T b = in[i + half];
      const T turn = direction * s[i];
      out[i] = a * c[i] - b * turn;
      out[i + half] = b * c[i] + a * turn;
    }
    for (int64_t i = rotary; i < size; ++i) out[i] = in[i];
  }
}

#define SEVENFOLD_INSTANTIATE(T)                                                                \
  template void rms_norm_forward<T>(const T*, const T*, T*, T*, int64_t, int64_t, double);      \
  template void rms_norm_backward<T>(const T*, const T*, const T*, const T*, T*, T*, int64_t,   \
                                     int64_t);                                                  \
  template void rotate<T>(const T*, const T*, const T*, T*, int64_t, int64_t, int64_t, int64_t, \
                          int64_t, T);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

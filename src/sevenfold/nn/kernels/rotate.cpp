#include "sevenfold/core/instruction_set.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold::kernels {
namespace {

template <typename T>
[[gnu::always_inline]] inline void rotate_head(const T* __restrict x, const Wide<T>* __restrict cos,
                                               const Wide<T>* __restrict sin, T* __restrict y,
                                               int64_t size, int64_t half, Wide<T> direction) {
  using A = Wide<T>;
  for (int64_t i = 0; i < half; ++i) {
    const A a = widen(x[i]), b = widen(x[i + half]);
    const A turn = direction * sin[i];
    y[i] = narrow<T>(a * cos[i] - b * turn);
    y[i + half] = narrow<T>(b * cos[i] + a * turn);
  }
  for (int64_t i = 2 * half; i < size; ++i) y[i] = x[i];
}

}  // namespace

template <typename T>
void rotate(const T* x, const Wide<T>* cos, const Wide<T>* sin, T* y, int64_t batch, int64_t length,
            int64_t heads, int64_t size, int64_t rotary, Wide<T> direction) {
  const int64_t half = rotary / 2;
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t row = 0; row < batch * length; ++row) {
      const int64_t position = row % length;
      for (int64_t head = row * heads; head < (row + 1) * heads; ++head)
        rotate_head<T>(x + head * size, cos + position * half, sin + position * half,
                       y + head * size, size, half, direction);
    }
  });
}

#define SEVENFOLD_INSTANTIATE(T)                                                                   \
  template void rotate<T>(const T*, const Wide<T>*, const Wide<T>*, T*, int64_t, int64_t, int64_t, \
                          int64_t, int64_t, Wide<T>);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
SEVENFOLD_INSTANTIATE(BFloat16)
SEVENFOLD_INSTANTIATE(Float16)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/core/vector_math.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold::kernels {
namespace {

template <typename T>
[[gnu::always_inline]] inline void forward_loop(const T* __restrict gate, const T* __restrict up,
                                                T* __restrict y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const Wide<T> a = widen(gate[i]);
    y[i] = narrow<T>(a * sigmoid(a) * widen(up[i]));
  }
}

// silu'(a) = s (1 + a (1 - s)) = s + silu (1 - s)
template <typename T>
[[gnu::always_inline]] inline void backward_loop(const T* __restrict dy, const T* __restrict gate,
                                                 const T* __restrict up, T* __restrict d_gate,
                                                 T* __restrict d_up, int64_t count) {
  using A = Wide<T>;
  for (int64_t i = 0; i < count; ++i) {
    const A a = widen(gate[i]), d = widen(dy[i]);
    const A s = sigmoid(a);
    const A silu = a * s;
    d_gate[i] = narrow<T>((s + silu * (A(1) - s)) * d * widen(up[i]));
    d_up[i] = narrow<T>(silu * d);
  }
}

}  // namespace

template <typename T>
void swiglu_forward(const T* gate, const T* up, T* y, int64_t count) {
  run_vectorized([=]() __attribute__((always_inline)) { forward_loop<T>(gate, up, y, count); });
}

template <typename T>
void swiglu_backward(const T* dy, const T* gate, const T* up, T* d_gate, T* d_up, int64_t count) {
  run_vectorized([=]() __attribute__((always_inline)) {
    backward_loop<T>(dy, gate, up, d_gate, d_up, count);
  });
}

#define SEVENFOLD_INSTANTIATE(T)                                    \
  template void swiglu_forward<T>(const T*, const T*, T*, int64_t); \
  template void swiglu_backward<T>(const T*, const T*, const T*, T*, T*, int64_t);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
SEVENFOLD_INSTANTIATE(BFloat16)
SEVENFOLD_INSTANTIATE(Float16)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::kernels

#include "sevenfold/optim/update_kernels.h"

#include <cmath>

// One copy of a function per instruction set, chosen when the program is loaded. All copies give
// the same bits: contraction to fused multiply-adds is off and nothing is reassociated. Sanitizers
// do not survive the loader's call of the chooser, so they get the plain copy.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SEVENFOLD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SEVENFOLD_CLONES
#endif
#define SEVENFOLD_INLINE inline __attribute__((always_inline))

namespace sevenfold {
namespace {

template <typename T>
SEVENFOLD_INLINE void adamw_loop(T* __restrict weight, const T* __restrict gradient,
                                 T* __restrict exp_avg, T* __restrict exp_avg_sq, int64_t count,
                                 const AdamWFactors& factors) {
  const T lr = static_cast<T>(factors.lr);
  const T beta1 = static_cast<T>(factors.beta1);
  const T beta2 = static_cast<T>(factors.beta2);
  // 1 - beta is taken in fp64: 1 - 0.999f is off by 5e-5 of itself.
  const T share1 = static_cast<T>(1.0 - factors.beta1);
  const T share2 = static_cast<T>(1.0 - factors.beta2);
  const T scale1 = static_cast<T>(1.0 / factors.correction1);
  const T scale2 = static_cast<T>(1.0 / factors.correction2);
  const T eps = static_cast<T>(factors.eps);
  const T decay = static_cast<T>(factors.weight_decay);
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i];
    const T m = beta1 * exp_avg[i] + share1 * g;
    const T v = beta2 * exp_avg_sq[i] + share2 * (g * g);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    weight[i] -= lr * (m * scale1 / (std::sqrt(v * scale2) + eps) + decay * weight[i]);
  }
}

template <typename T>
SEVENFOLD_INLINE void sgd_loop(T* __restrict weight, const T* __restrict gradient, int64_t count,
                               const SgdFactors& factors) {
  const T lr = static_cast<T>(factors.lr);
  const T decay = static_cast<T>(factors.weight_decay);
  for (int64_t i = 0; i < count; ++i) weight[i] -= lr * (gradient[i] + decay * weight[i]);
}

template <typename T>
SEVENFOLD_INLINE void sgd_momentum_loop(T* __restrict weight, const T* __restrict gradient,
                                        T* __restrict buffer, int64_t count,
                                        const SgdFactors& factors) {
  const T lr = static_cast<T>(factors.lr);
  const T momentum = static_cast<T>(factors.momentum);
  const T decay = static_cast<T>(factors.weight_decay);
  for (int64_t i = 0; i < count; ++i) {
    const T b = momentum * buffer[i] + (gradient[i] + decay * weight[i]);
    buffer[i] = b;
    weight[i] -= lr * b;
  }
}

// Element i goes to partial sum i mod kLanes: enough chains to keep the widest vector unit busy.
constexpr int64_t kLanes = 32;

template <typename T>
SEVENFOLD_INLINE double sum_of_squares_loop(const T* __restrict values, int64_t count) {
  double lanes[kLanes] = {};
  const int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto x = static_cast<double>(values[i + lane]);
      lanes[lane] += x * x;
    }
  }
  for (int64_t i = whole; i < count; ++i) {
    const auto x = static_cast<double>(values[i]);
    lanes[i - whole] += x * x;
  }
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace

SEVENFOLD_CLONES void adamw_update(const AdamWArrays<float>& arrays, int64_t num_elements,
                                   const AdamWFactors& factors) {
  adamw_loop(arrays.weight, arrays.gradient, arrays.exp_avg, arrays.exp_avg_sq, num_elements,
             factors);
}

SEVENFOLD_CLONES void adamw_update(const AdamWArrays<double>& arrays, int64_t num_elements,
                                   const AdamWFactors& factors) {
  adamw_loop(arrays.weight, arrays.gradient, arrays.exp_avg, arrays.exp_avg_sq, num_elements,
             factors);
}

SEVENFOLD_CLONES void sgd_update(const SgdArrays<float>& arrays, int64_t num_elements,
                                 const SgdFactors& factors) {
  if (arrays.buffer == nullptr) {
    sgd_loop(arrays.weight, arrays.gradient, num_elements, factors);
  } else {
    sgd_momentum_loop(arrays.weight, arrays.gradient, arrays.buffer, num_elements, factors);
  }
}

SEVENFOLD_CLONES void sgd_update(const SgdArrays<double>& arrays, int64_t num_elements,
                                 const SgdFactors& factors) {
  if (arrays.buffer == nullptr) {
    sgd_loop(arrays.weight, arrays.gradient, num_elements, factors);
  } else {
    sgd_momentum_loop(arrays.weight, arrays.gradient, arrays.buffer, num_elements, factors);
  }
}

SEVENFOLD_CLONES double sum_of_squares(const float* values, int64_t num_elements) {
  return sum_of_squares_loop(values, num_elements);
}

SEVENFOLD_CLONES double sum_of_squares(const double* values, int64_t num_elements) {
  return sum_of_squares_loop(values, num_elements);
}

}  // namespace sevenfold

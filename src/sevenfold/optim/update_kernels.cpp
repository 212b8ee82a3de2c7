#include "sevenfold/optim/update_kernels.h"

#include <cmath>

#include "sevenfold/core/narrow_floats.h"

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

template <RoundedFormat kFormat>
SEVENFOLD_INLINE uint16_t rounded_bits(float value) {
  return kFormat == RoundedFormat::kBf16 ? static_cast<uint16_t>(to_bfloat16(value))
                                         : static_cast<uint16_t>(to_float16(value));
}

// M, V: element types of the running means.
template <RoundedFormat kFormat, typename T, typename M, typename V>
SEVENFOLD_INLINE void adamw_loop(const AdamWArrays<T>& arrays, M* __restrict const exp_avg,
                                 V* __restrict const exp_avg_sq, int64_t count,
                                 const AdamWFactors& factors) {
  T* __restrict const weight = arrays.weight;
  const T* __restrict const gradient = arrays.gradient;
  uint16_t* __restrict const rounded = arrays.rounded.bits;
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
  const T scale = static_cast<T>(factors.gradient_scale);
  for (int64_t i = 0; i < count; ++i) {
    const T g = scale * gradient[i];
    const T m = beta1 * widen(exp_avg[i]) + share1 * g;
    const T v = beta2 * widen(exp_avg_sq[i]) + share2 * (g * g);
    exp_avg[i] = narrow<M>(m);
    exp_avg_sq[i] = narrow<V>(v);
    const T w = weight[i] - lr * (m * scale1 / (std::sqrt(v * scale2) + eps) + decay * weight[i]);
    weight[i] = w;
    if constexpr (kFormat != RoundedFormat::kNone)
      rounded[i] = rounded_bits<kFormat>(static_cast<float>(w));
  }
}

template <RoundedFormat kFormat>
SEVENFOLD_INLINE void adamw_any(const AdamWArrays<float>& arrays, int64_t count,
                                const AdamWFactors& factors) {
  const MomentArray<float>&m = arrays.exp_avg, &v = arrays.exp_avg_sq;
  if (m.bf16 != nullptr && v.bf16 != nullptr)
    adamw_loop<kFormat>(arrays, m.bf16, v.bf16, count, factors);
  else if (m.bf16 != nullptr)
    adamw_loop<kFormat>(arrays, m.bf16, v.full, count, factors);
  else if (v.bf16 != nullptr)
    adamw_loop<kFormat>(arrays, m.full, v.bf16, count, factors);
  else
    adamw_loop<kFormat>(arrays, m.full, v.full, count, factors);
}

template <RoundedFormat kFormat, bool kMomentum, typename T>
SEVENFOLD_INLINE void sgd_loop(const SgdArrays<T>& arrays, int64_t count,
                               const SgdFactors& factors) {
  T* __restrict const weight = arrays.weight;
  const T* __restrict const gradient = arrays.gradient;
  T* __restrict const buffer = arrays.buffer;
  uint16_t* __restrict const rounded = arrays.rounded.bits;
  const T lr = static_cast<T>(factors.lr);
  const T momentum = static_cast<T>(factors.momentum);
  const T decay = static_cast<T>(factors.weight_decay);
  const T scale = static_cast<T>(factors.gradient_scale);
  for (int64_t i = 0; i < count; ++i) {
    T step = scale * gradient[i] + decay * weight[i];
    if constexpr (kMomentum) {
      step = momentum * buffer[i] + step;
      buffer[i] = step;
    }
    const T w = weight[i] - lr * step;
    weight[i] = w;
    if constexpr (kFormat != RoundedFormat::kNone)
      rounded[i] = rounded_bits<kFormat>(static_cast<float>(w));
  }
}

template <RoundedFormat kFormat, typename T>
SEVENFOLD_INLINE void sgd_any(const SgdArrays<T>& arrays, int64_t count,
                              const SgdFactors& factors) {
  if (arrays.buffer == nullptr) {
    sgd_loop<kFormat, false>(arrays, count, factors);
  } else {
    sgd_loop<kFormat, true>(arrays, count, factors);
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

// Master weights are fp32, so only the float forms write rounded copies.
SEVENFOLD_CLONES void adamw_update(const AdamWArrays<float>& arrays, int64_t num_elements,
                                   const AdamWFactors& factors) {
  switch (arrays.rounded.format) {
    case RoundedFormat::kNone:
      return adamw_any<RoundedFormat::kNone>(arrays, num_elements, factors);
    case RoundedFormat::kBf16:
      return adamw_any<RoundedFormat::kBf16>(arrays, num_elements, factors);
    case RoundedFormat::kFp16:
      return adamw_any<RoundedFormat::kFp16>(arrays, num_elements, factors);
  }
}

SEVENFOLD_CLONES void adamw_update(const AdamWArrays<double>& arrays, int64_t num_elements,
                                   const AdamWFactors& factors) {
  adamw_loop<RoundedFormat::kNone>(arrays, arrays.exp_avg.full, arrays.exp_avg_sq.full,
                                   num_elements, factors);
}

SEVENFOLD_CLONES void sgd_update(const SgdArrays<float>& arrays, int64_t num_elements,
                                 const SgdFactors& factors) {
  switch (arrays.rounded.format) {
    case RoundedFormat::kNone:
      return sgd_any<RoundedFormat::kNone>(arrays, num_elements, factors);
    case RoundedFormat::kBf16:
      return sgd_any<RoundedFormat::kBf16>(arrays, num_elements, factors);
    case RoundedFormat::kFp16:
      return sgd_any<RoundedFormat::kFp16>(arrays, num_elements, factors);
  }
}

SEVENFOLD_CLONES void sgd_update(const SgdArrays<double>& arrays, int64_t num_elements,
                                 const SgdFactors& factors) {
  sgd_any<RoundedFormat::kNone>(arrays, num_elements, factors);
}

SEVENFOLD_CLONES double sum_of_squares(const float* values, int64_t num_elements) {
  return sum_of_squares_loop(values, num_elements);
}

SEVENFOLD_CLONES double sum_of_squares(const double* values, int64_t num_elements) {
  return sum_of_squares_loop(values, num_elements);
}

}  // namespace sevenfold

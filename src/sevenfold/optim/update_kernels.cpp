#include "sevenfold/optim/update_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

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

// What the steps of one tensor have in common, in the type of the arithmetic.
template <typename T>
struct MeanTerms {
  SEVENFOLD_INLINE explicit MeanTerms(const AdamWFactors& factors)
      : beta1(static_cast<T>(factors.beta1)),
        beta2(static_cast<T>(factors.beta2)),
        // 1 - beta is taken in fp64: 1 - 0.999f is off by 5e-5 of itself.
        share1(static_cast<T>(1.0 - factors.beta1)),
        share2(static_cast<T>(1.0 - factors.beta2)),
        scale(static_cast<T>(factors.gradient_scale)) {}

  SEVENFOLD_INLINE T exp_avg(T before, T g) const { return beta1 * before + share1 * g; }
  SEVENFOLD_INLINE T exp_avg_sq(T before, T g) const { return beta2 * before + share2 * (g * g); }

  T beta1, beta2, share1, share2, scale;
};

template <typename T, typename M>
SEVENFOLD_INLINE T loaded(M stored, T unit) {
  if constexpr (std::is_same_v<M, Float16>) return widen(stored) * unit;
  return widen(stored);
}

// inverse: of the unit, exact.
template <typename M, typename T>
SEVENFOLD_INLINE M stored(T mean, T inverse) {
  if constexpr (std::is_same_v<M, Float16>) return narrow<M>(mean * inverse);
  return narrow<M>(mean);
}

// M, V: element types of the running means.
template <RoundedFormat kFormat, typename T, typename M, typename V>
SEVENFOLD_INLINE void adamw_loop(const AdamWArrays<T>& arrays, M* __restrict const exp_avg,
                                 V* __restrict const exp_avg_sq, int64_t count,
                                 const AdamWFactors& factors) {
  T* __restrict const weight = arrays.weight;
  const T* __restrict const gradient = arrays.gradient;
  uint16_t* __restrict const rounded = arrays.rounded.bits;
  const MeanTerms<T> terms(factors);
  const T lr = static_cast<T>(factors.lr);
  const T scale1 = static_cast<T>(1.0 / factors.correction1);
  const T scale2 = static_cast<T>(1.0 / factors.correction2);
  const T eps = static_cast<T>(factors.eps);
  const T decay = static_cast<T>(factors.weight_decay);
  const T unit1 = arrays.exp_avg.unit, inverse1 = T{1} / arrays.exp_avg.next_unit;
  const T unit2 = arrays.exp_avg_sq.unit, inverse2 = T{1} / arrays.exp_avg_sq.next_unit;
  for (int64_t i = 0; i < count; ++i) {
    const T g = terms.scale * gradient[i];
    const T m = terms.exp_avg(loaded(exp_avg[i], unit1), g);
    const T v = terms.exp_avg_sq(loaded(exp_avg_sq[i], unit2), g);
    exp_avg[i] = stored<M>(m, inverse1);
    exp_avg_sq[i] = stored<V>(v, inverse2);
    const T w = weight[i] - lr * (m * scale1 / (std::sqrt(v * scale2) + eps) + decay * weight[i]);
    weight[i] = w;
    if constexpr (kFormat != RoundedFormat::kNone)
      rounded[i] = rounded_bits<kFormat>(static_cast<float>(w));
  }
}

// Magnitudes are compared as bit patterns, which order as they do.
SEVENFOLD_INLINE uint32_t magnitude_bits(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7fffffffu;
}

template <typename M, typename V>
SEVENFOLD_INLINE MomentMaxima maxima_loop(const AdamWArrays<float>& arrays,
                                          const M* __restrict const exp_avg,
                                          const V* __restrict const exp_avg_sq, int64_t count,
                                          const AdamWFactors& factors) {
  const float* __restrict const gradient = arrays.gradient;
  const MeanTerms<float> terms(factors);
  uint32_t largest1 = 0, largest2 = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float g = terms.scale * gradient[i];
    const float m = terms.exp_avg(loaded(exp_avg[i], arrays.exp_avg.unit), g);
    const float v = terms.exp_avg_sq(loaded(exp_avg_sq[i], arrays.exp_avg_sq.unit), g);
    largest1 = std::max(largest1, magnitude_bits(m));
    largest2 = std::max(largest2, magnitude_bits(v));
  }
  return {std::bit_cast<float>(largest1), std::bit_cast<float>(largest2)};
}

// Calls body with the elements, of whatever type they are.
template <typename Body>
SEVENFOLD_INLINE void with_elements(const MomentArray<float>& mean, const Body& body) {
  if (mean.bf16 != nullptr) {
    body(mean.bf16);
  } else if (mean.fp16 != nullptr) {
    body(mean.fp16);
  } else {
    body(mean.full);
  }
}

template <RoundedFormat kFormat>
SEVENFOLD_INLINE void adamw_any(const AdamWArrays<float>& arrays, int64_t count,
                                const AdamWFactors& factors) {
  with_elements(
      arrays.exp_avg, [&](auto* m) __attribute__((always_inline)) {
        with_elements(
            arrays.exp_avg_sq, [&](auto* v) __attribute__((always_inline)) {
              adamw_loop<kFormat>(arrays, m, v, count, factors);
            });
      });
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

SEVENFOLD_CLONES MomentMaxima adamw_maxima(const AdamWArrays<float>& arrays, int64_t num_elements,
                                           const AdamWFactors& factors) {
  MomentMaxima maxima;
  with_elements(
      arrays.exp_avg, [&](auto* m) __attribute__((always_inline)) {
        with_elements(
            arrays.exp_avg_sq, [&](auto* v) __attribute__((always_inline)) {
              maxima = maxima_loop(arrays, m, v, num_elements, factors);
            });
      });
  return maxima;
}

float fp16_unit(float maximum) {
  if (maximum == 0.0F || !std::isfinite(maximum)) return 1.0F;
  int exponent = 0;  // maximum is below 2 to it, and at least half of that
  std::frexp(maximum, &exponent);
  return std::ldexp(1.0F, std::max(exponent - 15, -126));  // its inverse is a float too
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

#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace sevenfold {

// Building blocks of loops that run_vectorized() compiles: always inlined, branch-free, the same
// bits from every instruction set.

// Partial sums of one row. Element i belongs to lane i mod kLanes, and the lanes are added
// pairwise: a row's sum does not depend on where the row stands or on the width of the vectors.
inline constexpr int64_t kLanes = 32;

template <typename A>
[[gnu::always_inline]] inline A add_lanes(A* lanes) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

// Sum of term(i) for i in [0, count).
template <typename A, typename Term>
[[gnu::always_inline]] inline A lane_sum(int64_t count, const Term& term) {
  A lanes[kLanes] = {};
  const int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  for (int64_t i = whole; i < count; ++i) lanes[i - whole] += term(i);
  return add_lanes(lanes);
}

// The larger one; a NaN in `right` is passed over.
template <typename A>
[[gnu::always_inline]] inline A larger(A left, A right) {
  return right > left ? right : left;
}

// Largest term(i) for i in [0, count), at least `lowest`; NaNs are passed over.
template <typename A, typename Term>
[[gnu::always_inline]] inline A lane_max(int64_t count, A lowest, const Term& term) {
  A lanes[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = lowest;
  const int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = larger(lanes[lane], term(i + lane));
  for (int64_t i = whole; i < count; ++i) lanes[i - whole] = larger(lanes[i - whole], term(i));
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t lane = 0; lane < width; ++lane)
      lanes[lane] = larger(lanes[lane], lanes[lane + width]);
  return lanes[0];
}

// Numbers of the exponential function. Adding `shift` rounds to an integer, which then stands in
// the low bits.
template <typename A>
struct ExponentialConstants;

template <>
struct ExponentialConstants<float> {
  using Bits = uint32_t;
  static constexpr float lowest = -104.0f, highest = 89.0f;  // beyond: 0 and infinity
  static constexpr float shift = 0x1.8p23f;
  static constexpr Bits exponent_bias = 127;
  static constexpr int mantissa_bits = 23;
  static constexpr float log2_e = 0x1.715476p0f;
  // ln 2 in two parts; products of the first with small integers are exact.
  static constexpr float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f;
  static constexpr int degree = 7;
};

template <>
struct ExponentialConstants<double> {
  using Bits = uint64_t;
  static constexpr double lowest = -746.0, highest = 710.0;
  static constexpr double shift = 0x1.8p52;
  static constexpr Bits exponent_bias = 1023;
  static constexpr int mantissa_bits = 52;
  static constexpr double log2_e = 0x1.71547652b82fep0;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr int degree = 13;
};

// 1 / n!
template <typename A>
[[gnu::always_inline]] constexpr A inverse_factorial(int n) {
  double product = 1.0;
  for (int i = 2; i <= n; ++i) product *= i;
  return static_cast<A>(1.0 / product);
}

// e^x for float and double within 1.5 units in the last place, subnormal results within the
// smallest one. e^-inf = 0, overflow is infinity, NaN stays NaN. Method: e^x = 2^n e^r with
// |r| <= ln(2) / 2 and the Taylor polynomial of e^r; 2^n in two factors, so that neither overflows.
template <typename A>
[[gnu::always_inline]] inline A exponential(A x) {
  using C = ExponentialConstants<A>;
  using Bits = typename C::Bits;
  x = x < C::lowest ? C::lowest : x;
  x = x > C::highest ? C::highest : x;
  const A shifted = x * C::log2_e + C::shift;
  const A n = shifted - C::shift;
  const A r = (x - n * C::ln2_high) - n * C::ln2_low;
  A q = inverse_factorial<A>(C::degree);
#pragma GCC unroll 16
  for (int i = C::degree - 1; i >= 2; --i) q = q * r + inverse_factorial<A>(i);
  const A power = (q * (r * r) + r) + A(1);
  const Bits zero = std::bit_cast<Bits>(C::shift);
  const Bits half_n = std::bit_cast<Bits>(n * A(0.5) + C::shift) - zero;
  const Bits rest = (std::bit_cast<Bits>(shifted) - zero) - half_n;
  const A first = std::bit_cast<A>((half_n + C::exponent_bias) << C::mantissa_bits);
  const A second = std::bit_cast<A>((rest + C::exponent_bias) << C::mantissa_bits);
  return power * first * second;
}

// 1 / (1 + e^-x)
template <typename A>
[[gnu::always_inline]] inline A sigmoid(A x) {
  return A(1) / (A(1) + exponential(-x));
}

}  // namespace sevenfold

#pragma once

#include <limits>

#include "sevenfold/core/narrow_floats.h"

namespace sevenfold::testing {

// Largest relative error of rounding a normal number to T: 2^-(bits of the significand).
template <typename T>
constexpr double unit_roundoff() {
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-8;
  if constexpr (std::is_same_v<T, Float16>) return 0x1p-11;
  if constexpr (std::is_same_v<T, float>) return 0x1p-24;
  return 0x1p-53;
}

// Elementwise formula of about ten operations in Wide<T>, none of which cancels, then rounded to T.
template <typename T>
constexpr double elementwise_tolerance() {
  return unit_roundoff<T>() + 16 * unit_roundoff<Wide<T>>();
}

// The same with a sum of up to 1024 terms in it, over 32 lanes: at most 32 + 5 additions deep.
template <typename T>
constexpr double summed_tolerance() {
  return unit_roundoff<T>() + 64 * unit_roundoff<Wide<T>>();
}

// Smallest normal number of T: below it only absolute errors are bounded, and a sum that cancels to
// nearly nothing is compared on its terms' scale instead.
template <typename T>
constexpr double smallest_normal() {
  return std::is_same_v<T, Float16> ? 0x1p-14 : 0x1p-126;
}

}  // namespace sevenfold::testing

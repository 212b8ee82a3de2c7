#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace sevenfold {

// The 16-bit floating-point types as loops see them: arithmetic is done in fp32, and a result is
// rounded once, to nearest even. Same layout as LibTorch's types. Everything is inlined even where
// the caller is compiled for a newer processor, and branch-free, so that loops over it vectorise.

// Enumerations and not structs: to the vectoriser they are plain 16-bit numbers.
enum class BFloat16 : uint16_t {};
enum class Float16 : uint16_t {};

// Type of the arithmetic on elements of type T.
template <typename T>
using Wide =
    std::conditional_t<std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>, float, T>;

[[gnu::always_inline]] inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

// NaN stays NaN.
[[gnu::always_inline]] inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return BFloat16{static_cast<uint16_t>(is_nan ? 0x7fc0u : rounded)};
}

// Half precision by scaling with powers of two: exact, with gradual underflow; the same bits as
// LibTorch's conversion. Method: M. Dukhan, FP16 library.
[[gnu::always_inline]] inline float to_float(Float16 value) {
  const uint32_t word = static_cast<uint32_t>(value) << 16;
  const uint32_t magnitude = word + word;
  const float normal = std::bit_cast<float>((magnitude >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((magnitude >> 17) | (126u << 23)) - 0.5f;
  const uint32_t chosen =
      magnitude < (1u << 27) ? std::bit_cast<uint32_t>(subnormal) : std::bit_cast<uint32_t>(normal);
  return std::bit_cast<float>((word & 0x80000000u) | chosen);
}

[[gnu::always_inline]] inline Float16 to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits + bits;
  const float absolute = std::bit_cast<float>(bits & 0x7fffffffu);
  const uint32_t exponent = std::max(magnitude & 0xff000000u, 0x71000000u);
  const float rounded =
      std::bit_cast<float>((exponent >> 1) + 0x07800000u) + (absolute * 0x1.0p+112f) * 0x1.0p-110f;
  const auto rounded_bits = std::bit_cast<uint32_t>(rounded);
  const uint32_t finite = ((rounded_bits >> 13) & 0x7c00u) + (rounded_bits & 0x0fffu);
  return Float16{static_cast<uint16_t>(((bits & 0x80000000u) >> 16) |
                                       (magnitude > 0xff000000u ? 0x7e00u : finite))};
}

template <typename T>
[[gnu::always_inline]] inline Wide<T> widen(T value) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <typename T>
[[gnu::always_inline]] inline T narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else {
    return value;
  }
}

}  // namespace sevenfold

#include "sevenfold/dist/threads/combine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace sevenfold::threads {
namespace {

// Elements reduced at a time: the accumulators (at most 8 KiB) stay in the first-level cache while
// every source is added to them and every destination written from them.
constexpr int64_t kStripElements = 1024;

// Everything below is inlined into the two entry points at the end, one of them compiled for AVX2;
// the functions must not exist by themselves, or both would share the version for the oldest
// processor.
#define SEVENFOLD_KERNEL [[gnu::always_inline]] inline

// Enumerations and not structs: to the vectoriser they are plain 16-bit numbers.
enum class BFloat16 : uint16_t {};
enum class Float16 : uint16_t {};

SEVENFOLD_KERNEL float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

// Round to nearest even; NaN stays NaN. Branch-free, so the loops over it vectorise.
SEVENFOLD_KERNEL BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return BFloat16{static_cast<uint16_t>(is_nan ? 0x7fc0u : rounded)};
}

// Half precision by scaling with powers of two: exact, branch-free and with gradual underflow; the
// same bits as LibTorch's conversion. Method: M. Dukhan, FP16 library.
SEVENFOLD_KERNEL float to_float(Float16 value) {
  const uint32_t word = static_cast<uint32_t>(value) << 16;
  const uint32_t magnitude = word + word;
  const float normal = std::bit_cast<float>((magnitude >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((magnitude >> 17) | (126u << 23)) - 0.5f;
  const uint32_t chosen =
      magnitude < (1u << 27) ? std::bit_cast<uint32_t>(subnormal) : std::bit_cast<uint32_t>(normal);
  return std::bit_cast<float>((word & 0x80000000u) | chosen);
}

SEVENFOLD_KERNEL Float16 to_float16(float value) {
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
using Accumulator =
    std::conditional_t<std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>, float, T>;

template <typename T>
SEVENFOLD_KERNEL Accumulator<T> widen(T value) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <typename T>
SEVENFOLD_KERNEL T narrow(Accumulator<T> value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else {
    return value;
  }
}

template <Reduction kReduction, typename A>
SEVENFOLD_KERNEL A reduce(A left, A right) {
  if constexpr (kReduction == Reduction::kMax) {
    return ((left != left) | (left > right)) ? left : right;  // no branch: the loop vectorises
  } else if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;  // wraps instead of overflowing
    return static_cast<A>(static_cast<U>(static_cast<U>(left) + static_cast<U>(right)));
  } else {
    return left + right;
  }
}

template <typename T>
SEVENFOLD_KERNEL const T* elements(const std::byte* base, int64_t begin) {
  return reinterpret_cast<const T*>(base) + begin;
}

template <typename T>
SEVENFOLD_KERNEL T* elements(std::byte* base, int64_t begin) {
  return reinterpret_cast<T*>(base) + begin;
}

template <typename T, Reduction kReduction>
SEVENFOLD_KERNEL void reduce_strip(std::span<const std::byte* const> sources,
                                   std::span<std::byte* const> destinations, int64_t begin,
                                   int64_t count) {
  using A = Accumulator<T>;
  alignas(64) A sums[kStripElements];
  const T* first = elements<T>(sources[0], begin);
  const T* second = elements<T>(sources[1], begin);
  for (int64_t i = 0; i < count; ++i)
    sums[i] = reduce<kReduction>(widen(first[i]), widen(second[i]));
  for (const std::byte* source : sources.subspan(2)) {
    const T* values = elements<T>(source, begin);
    for (int64_t i = 0; i < count; ++i) sums[i] = reduce<kReduction>(sums[i], widen(values[i]));
  }
  const T* results = nullptr;
  alignas(64) T rounded[kStripElements];
  if constexpr (std::is_same_v<T, A>) {
    results = sums;
  } else {  // rounded once, not once per destination
    for (int64_t i = 0; i < count; ++i) rounded[i] = narrow<T>(sums[i]);
    results = rounded;
  }
  for (std::byte* destination : destinations) {
    std::memcpy(elements<T>(destination, begin), results, static_cast<size_t>(count) * sizeof(T));
  }
}

template <typename T, Reduction kReduction>
SEVENFOLD_KERNEL void reduce_range(std::span<const std::byte* const> sources,
                                   std::span<std::byte* const> destinations, int64_t begin,
                                   int64_t count) {
  for (int64_t done = 0; done < count; done += kStripElements) {
    reduce_strip<T, kReduction>(sources, destinations, begin + done,
                                std::min(kStripElements, count - done));
  }
}

template <typename T>
SEVENFOLD_KERNEL void reduce_with(Reduction reduction, std::span<const std::byte* const> sources,
                                  std::span<std::byte* const> destinations, int64_t begin,
                                  int64_t count) {
  if (reduction == Reduction::kSum) {
    reduce_range<T, Reduction::kSum>(sources, destinations, begin, count);
  } else {
    reduce_range<T, Reduction::kMax>(sources, destinations, begin, count);
  }
}

SEVENFOLD_KERNEL void reduce_elements(ElementType type, Reduction reduction,
                                      std::span<const std::byte* const> sources,
                                      std::span<std::byte* const> destinations, int64_t begin,
                                      int64_t count) {
  switch (type) {
    case ElementType::kFloat64:
      return reduce_with<double>(reduction, sources, destinations, begin, count);
    case ElementType::kFloat32:
      return reduce_with<float>(reduction, sources, destinations, begin, count);
    case ElementType::kBFloat16:
      return reduce_with<BFloat16>(reduction, sources, destinations, begin, count);
    case ElementType::kFloat16:
      return reduce_with<Float16>(reduction, sources, destinations, begin, count);
    case ElementType::kInt64:
      return reduce_with<int64_t>(reduction, sources, destinations, begin, count);
    case ElementType::kInt32:
      return reduce_with<int32_t>(reduction, sources, destinations, begin, count);
    case ElementType::kUInt8:
      return reduce_with<uint8_t>(reduction, sources, destinations, begin, count);
  }
}

// Products of powers of two, sums and conversions: the same bits from every instruction set.
void reduce_portably(ElementType type, Reduction reduction,
                     std::span<const std::byte* const> sources,
                     std::span<std::byte* const> destinations, int64_t begin, int64_t count) {
  reduce_elements(type, reduction, sources, destinations, begin, count);
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void reduce_with_avx2(ElementType type, Reduction reduction,
                                              std::span<const std::byte* const> sources,
                                              std::span<std::byte* const> destinations,
                                              int64_t begin, int64_t count) {
  reduce_elements(type, reduction, sources, destinations, begin, count);
}
#endif

void copy_range(const std::byte* source, std::span<std::byte* const> destinations,
                int64_t begin_bytes, int64_t num_bytes) {
  for (std::byte* destination : destinations) {
    if (destination == source) continue;
    std::memcpy(destination + begin_bytes, source + begin_bytes, static_cast<size_t>(num_bytes));
  }
}

}  // namespace

int64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kBFloat16:
    case ElementType::kFloat16:
      return 2;
    case ElementType::kUInt8:
      return 1;
  }
  return 0;
}

std::string_view element_name(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
      return "fp64";
    case ElementType::kFloat32:
      return "fp32";
    case ElementType::kBFloat16:
      return "bf16";
    case ElementType::kFloat16:
      return "fp16";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kUInt8:
      return "uint8";
  }
  return "?";
}

void combine(ElementType type, Reduction reduction, std::span<const std::byte* const> sources,
             std::span<std::byte* const> destinations, int64_t begin, int64_t count) {
  if (sources.size() == 1) {
    const int64_t width = element_bytes(type);
    return copy_range(sources[0], destinations, begin * width, count * width);
  }
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2"))
    return reduce_with_avx2(type, reduction, sources, destinations, begin, count);
#endif
  reduce_portably(type, reduction, sources, destinations, begin, count);
}

}  // namespace sevenfold::threads

#include "sevenfold/dist/threads/combine.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/core/narrow_floats.h"

namespace sevenfold::threads {
namespace {

// Elements reduced at a time: the accumulators (at most 8 KiB) stay in the first-level cache while
// every source is added to them and every destination written from them.
constexpr int64_t kStripElements = 1024;

// Everything below is inlined into the loop that combine() has compiled for each instruction set.
#define SEVENFOLD_KERNEL [[gnu::always_inline]] inline

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
  using A = Wide<T>;
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
  run_vectorized([=]() __attribute__((always_inline)) {
    reduce_elements(type, reduction, sources, destinations, begin, count);
  });
}

}  // namespace sevenfold::threads

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sevenfold::threads {

// Element types that collectives move and reduce.
enum class ElementType : uint8_t {
  kFloat64,
  kFloat32,
  kBFloat16,
  kFloat16,
  kInt64,
  kInt32,
  kUInt8
};
enum class Reduction : uint8_t { kSum, kMax };

int64_t element_bytes(ElementType type);
std::string_view element_name(ElementType type);  // "fp32", ...

// destinations[k][i] = sources[0][i] (+ or max) sources[1][i] (+ or max) ... for i in [begin, begin
// + count). Sums run in the order of `sources`, so the result has the same bits whoever computes it
// and however the range is cut. bf16 and fp16 are reduced in fp32 and rounded once; integers wrap;
// a maximum with a NaN is NaN. With one source this is a copy. A destination may be one of the
// sources (in place) but must not overlap one in any other way.
void combine(ElementType type, Reduction reduction, std::span<const std::byte* const> sources,
             std::span<std::byte* const> destinations, int64_t begin, int64_t count);

}  // namespace sevenfold::threads

#include "sevenfold/dataset/order/numpy_random.h"

#include <bit>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {

NumpyRandom::NumpyRandom(uint64_t seed) {
  if (seed >= uint64_t{1} << 32)
    raise<ConfigError>(
        "dataset: seed={} is outside 0..{}, the range of Megatron's data order; choose a "
        "smaller seed",
        seed, (uint64_t{1} << 32) - 1);
  engine_.seed(static_cast<uint32_t>(seed));
}

uint64_t NumpyRandom::bounded(uint64_t max) {
  if (max == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero(max);
  const bool one_word = max < uint64_t{1} << 32;
  for (;;) {
    uint64_t bits = bits32();
    if (!one_word) bits = bits << 32 | bits32();  // the first word is the high half
    if ((bits & mask) <= max) return bits & mask;
  }
}

void NumpyRandom::shuffle(std::span<int64_t> values) {
  for (size_t i = values.size(); i-- > 1;) std::swap(values[i], values[bounded(i)]);
}

}  // namespace sevenfold

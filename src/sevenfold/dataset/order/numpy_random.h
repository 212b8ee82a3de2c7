#pragma once

#include <cstdint>
#include <random>
#include <span>

namespace sevenfold {

// numpy's RandomState as far as Megatron's data order uses it: MT19937, the bounded draw by masked
// rejection, and shuffle. Values are numpy's, bit for bit.
class NumpyRandom {
 public:
  // Throws ConfigError unless 0 <= seed < 2^32, as numpy does.
  explicit NumpyRandom(uint64_t seed);

  uint32_t bits32() { return static_cast<uint32_t>(engine_()); }
  // Uniform in 0..max, both ends possible. max = 0 draws nothing.
  uint64_t bounded(uint64_t max);
  // Fisher-Yates from the end.
  void shuffle(std::span<int64_t> values);

 private:
  std::mt19937 engine_;
};

}  // namespace sevenfold

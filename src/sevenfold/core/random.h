#pragma once

#include <cstdint>
#include <string_view>

namespace sevenfold {

// Counter-based random numbers for start weights: a value is a function of the parameter's name,
// the run's seed and the element's index in the global tensor, never of a rank. No library
// generator and no libm: equal bits on every machine. Definition: the SplitMix64 finalizer over an
// FNV-1a key.

// FNV-1a, 64 bits.
constexpr uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Finalizer of SplitMix64: a bijection of 64-bit numbers that scatters them.
constexpr uint64_t scatter64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

class ElementStream {
 public:
  // Hot start (what `verify` uses): the key is the name alone.
  static ElementStream hot(std::string_view name) { return ElementStream(fnv1a64(name)); }
  // Ordinary start: the run's seed is mixed into the key.
  static ElementStream seeded(std::string_view name, uint64_t seed) {
    return ElementStream(fnv1a64(name) + seed * 0xD6E8FEB86659FD93u);
  }

  uint64_t bits(uint64_t index) const {
    return scatter64(key_ + (index + 1) * 0x9E3779B97F4A7C15u);
  }
  // Uniform in [-1, 1), a multiple of 2^-52, exact in fp64.
  double uniform(uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1p-52 - 1.0;
  }
  // Standard normal by inversion of the distribution function (one draw, |z| < 8.3).
  double normal(uint64_t index) const;

 private:
  explicit ElementStream(uint64_t key) : key_(key) {}
  uint64_t key_;
};

// Inverse of the standard normal distribution function for 0 < p < 1, relative error about 1e-16.
// Source: Wichura 1988, algorithm AS 241 (PPND16); the logarithm is our own, so bits do not depend
// on libm.
double inverse_normal(double p);

}  // namespace sevenfold

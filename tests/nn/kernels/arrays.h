#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/core/narrow_floats.h"

namespace sevenfold::kernels::testing {

// Deterministic values in (-scale, scale), different for each `salt`.
inline double wave(int64_t i, double salt, double scale = 2.0) {
  return scale * std::sin(1.7 * static_cast<double>(i) + salt) *
         std::cos(0.37 * salt + 0.01 * static_cast<double>(i));
}

// An array that begins one element after an aligned address, so that no loop may count on more.
template <typename T>
class Array {
 public:
  explicit Array(int64_t size) : values_(static_cast<size_t>(size) + 1) {}
  Array(int64_t size, double salt, double scale = 2.0) : Array(size) {
    for (int64_t i = 0; i < size; ++i) set(i, wave(i, salt, scale));
  }

  T* data() { return values_.data() + 1; }
  const T* data() const { return values_.data() + 1; }
  int64_t size() const { return static_cast<int64_t>(values_.size()) - 1; }
  // The value as it is stored, exactly.
  double operator[](int64_t i) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<double>(data()[i]);
    } else {
      return static_cast<double>(widen(data()[i]));
    }
  }
  void set(int64_t i, double value) { data()[i] = narrow<T>(static_cast<Wide<T>>(value)); }
  bool same_bits(const Array& other) const {
    return values_.size() == other.values_.size() &&
           std::memcmp(data(), other.data(), static_cast<size_t>(size()) * sizeof(T)) == 0;
  }

 private:
  std::vector<T> values_;
};

inline const std::vector<InstructionSet> kInstructionSets = {
    InstructionSet::kPortable, InstructionSet::kAvx2, InstructionSet::kAvx512};
inline const std::vector<int64_t> kOddSizes = {1, 7, 17, 64, 513};

}  // namespace sevenfold::kernels::testing

#include <vector>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {

std::string divisor_list(int64_t value) {
  constexpr size_t kMost = 16;
  std::vector<int64_t> divisors;
  for (int64_t i = 1; i <= value / i; ++i) {
    if (value % i != 0) continue;
    divisors.push_back(i);
    if (divisors.size() >= kMost) break;
  }
  for (size_t i = divisors.size(); i-- > 0 && divisors.size() < kMost;) {
    const int64_t twin = value / divisors[i];
    if (twin > divisors.back()) divisors.push_back(twin);
  }
  std::string list;
  for (size_t i = 0; i < divisors.size(); ++i) {
    const char* separator = i == 0 ? "" : i + 1 == divisors.size() ? " or " : ", ";
    list += separator + std::to_string(divisors[i]);
  }
  return list;
}

std::string nearest_multiples(int64_t value, int64_t unit) {
  const int64_t lower = value / unit * unit;
  if (lower < unit) return std::to_string(unit);
  return fmt::format("{} or {}", lower, lower + unit);
}

}  // namespace sevenfold::config

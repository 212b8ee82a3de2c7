#include "sevenfold/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sevenfold {

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string format_bytes(int64_t bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::fabs(value) >= 1024.0 && unit + 1 < std::size(kUnits)) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole >= 3600) return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

int64_t edit_distance(std::string_view left, std::string_view right) {
  const size_t columns = right.size() + 1;
  std::vector<int64_t> before(columns), above(columns), row(columns);
  for (size_t j = 0; j < columns; ++j) above[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= left.size(); ++i) {
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j < columns; ++j) {
      const int64_t substitution = above[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[columns - 1];
}

}  // namespace sevenfold

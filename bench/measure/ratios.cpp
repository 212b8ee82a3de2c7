#include "bench/measure/ratios.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sevenfold::bench {

Interval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double reach = 0.98 * std::sqrt(n);  // 1.96 standard deviations of a fair coin's count
  const auto low = static_cast<size_t>(std::max(0.0, std::floor(n / 2 - reach)));
  const auto high = static_cast<size_t>(std::min(n - 1, std::ceil(n / 2 + reach)));
  const size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
  return {median, values[low], values[high]};
}

void print_times(const std::string& name, const std::vector<double>& seconds) {
  const Interval time = median_interval(seconds);
  fmt::print("{:<32} {:8.1f} ms [{:.1f}, {:.1f}]\n", name, 1e3 * time.median, 1e3 * time.low,
             1e3 * time.high);
}

void print_ratio(const std::string& name, const std::vector<double>& a,
                 const std::vector<double>& b, std::optional<Aim> aim) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  const Interval ratio = median_interval(ratios);
  fmt::print("{:<32} {:8.3f} [{:.3f}, {:.3f}]", name, ratio.median, ratio.low, ratio.high);
  if (aim) {
    const bool at_least = aim->kind == Aim::Kind::kAtLeast;
    const bool is_met = at_least ? ratio.median >= aim->bound : ratio.median <= aim->bound;
    fmt::print("   aim at {} {}: {}", at_least ? "least" : "most", aim->bound,
               is_met ? "met" : "missed");
  }
  fmt::print("\n");
}

}  // namespace sevenfold::bench

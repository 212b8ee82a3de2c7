#include "bench/measure/ratios.h"

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

}  // namespace sevenfold::bench

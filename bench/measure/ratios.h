#pragma once

#include <vector>

namespace sevenfold::bench {

struct Interval {
  double median = 0.0;
  double low = 0.0;
  double high = 0.0;
};

// Median of the values and the distribution-free interval that covers the true median with at least
// 95 %: order statistics n/2 -+ 0.98 sqrt(n), rounded outwards. At least 6 values.
Interval median_interval(std::vector<double> values);

}  // namespace sevenfold::bench

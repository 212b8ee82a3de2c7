#pragma once

#include <optional>
#include <string>
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

// What a ratio should come to.
struct Aim {
  enum class Kind { kAtLeast, kAtMost };
  Kind kind = Kind::kAtLeast;
  double bound = 1.0;
};

// A line of output: median and interval of times, in milliseconds.
void print_times(const std::string& name, const std::vector<double>& seconds);
// A line of output: median and interval of the ratios a[i] / b[i], and whether the aim is met.
void print_ratio(const std::string& name, const std::vector<double>& a,
                 const std::vector<double>& b, std::optional<Aim> aim = {});

}  // namespace sevenfold::bench

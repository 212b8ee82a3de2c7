#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sevenfold::cli {

// global batch = micro batch x data-parallel size x accumulation (micro batches per rank and step).
struct BatchSizes {
  int64_t global_batch = 0;
  int64_t micro_batch = 0;
  int64_t dp = 0;
  int64_t accumulation = 0;
  friend bool operator==(const BatchSizes&, const BatchSizes&) = default;
};

inline constexpr int64_t kMaxBatchSize = int64_t{1} << 31;

// Each size 1 to kMaxBatchSize.
struct BatchRequest {
  std::optional<int64_t> global_batch;
  std::optional<int64_t> micro_batch;
  std::optional<int64_t> dp;
  std::optional<int64_t> accumulation;
  int num_given() const;
};

// All sizes that fit what is given, smallest accumulation first: one if three or four sizes are
// given; with two, every one for a given global batch, else the first eight. Throws ConfigError
// (the equation in the given numbers, the nearest sizes that work) if none fits, or if fewer than
// two are given.
std::vector<BatchSizes> solve_batch(const BatchRequest& request);

}  // namespace sevenfold::cli

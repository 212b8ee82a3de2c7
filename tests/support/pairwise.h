#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace sevenfold::testing {

// A combination: for each factor the index of its level.
using Combination = std::vector<size_t>;

// Every combination of factors with these numbers of levels.
inline std::vector<Combination> all_combinations(const std::vector<size_t>& levels) {
  std::vector<Combination> all = {{}};
  for (const size_t count : levels) {
    std::vector<Combination> longer;
    for (const Combination& start : all)
      for (size_t level = 0; level < count; ++level) {
        longer.push_back(start);
        longer.back().push_back(level);
      }
    all = std::move(longer);
  }
  return all;
}

// A choice of `candidates` in which every pair of levels of two factors that occurs in any of them
// occurs: greedily the combination with the most pairs that are still missing.
inline std::vector<Combination> pairwise_cover(const std::vector<Combination>& candidates) {
  using Pair = std::pair<std::pair<size_t, size_t>, std::pair<size_t, size_t>>;
  std::map<Pair, size_t> numbers;
  std::vector<std::vector<size_t>> pairs_of;  // by candidate, as numbers
  for (const Combination& combination : candidates) {
    std::vector<size_t>& pairs = pairs_of.emplace_back();
    for (size_t a = 0; a < combination.size(); ++a)
      for (size_t b = a + 1; b < combination.size(); ++b)
        pairs.push_back(
            numbers.try_emplace({{a, combination[a]}, {b, combination[b]}}, numbers.size())
                .first->second);
  }
  std::vector<size_t> is_missing(numbers.size(), 1);
  std::vector<Combination> chosen;
  for (size_t num_missing = numbers.size(); num_missing > 0;) {
    size_t best = 0, most = 0;
    for (size_t candidate = 0; candidate < candidates.size(); ++candidate) {
      size_t found = 0;
      for (const size_t pair : pairs_of[candidate]) found += is_missing[pair];
      if (found > most) {
        most = found;
        best = candidate;
      }
    }
    for (const size_t pair : pairs_of[best]) is_missing[pair] = 0;
    num_missing -= most;
    chosen.push_back(candidates[best]);
  }
  return chosen;
}

}  // namespace sevenfold::testing

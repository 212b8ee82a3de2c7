#pragma once

#include <cstdint>
#include <set>
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
  const auto pairs_of = [](const Combination& combination) {
    std::vector<Pair> pairs;
    for (size_t a = 0; a < combination.size(); ++a)
      for (size_t b = a + 1; b < combination.size(); ++b)
        pairs.push_back({{a, combination[a]}, {b, combination[b]}});
    return pairs;
  };
  std::set<Pair> missing;
  for (const Combination& candidate : candidates)
    for (const Pair& pair : pairs_of(candidate)) missing.insert(pair);
  std::vector<Combination> chosen;
  while (!missing.empty()) {
    const Combination* best = nullptr;
    size_t most = 0;
    for (const Combination& candidate : candidates) {
      size_t found = 0;
      for (const Pair& pair : pairs_of(candidate)) found += missing.count(pair);
      if (found > most) {
        most = found;
        best = &candidate;
      }
    }
    for (const Pair& pair : pairs_of(*best)) missing.erase(pair);
    chosen.push_back(*best);
  }
  return chosen;
}

}  // namespace sevenfold::testing

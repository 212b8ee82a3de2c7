#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sevenfold {

// "43,616": thousands separated by commas.
std::string with_commas(int64_t value);

// "1.5 GiB", "512 B".
std::string format_bytes(int64_t bytes);

// "3h 02m", "4m 05s", "12s".
std::string format_duration(double seconds);

// Damerau-Levenshtein distance (insertion, deletion, substitution, swap of neighbours), for
// suggestions.
int64_t edit_distance(std::string_view left, std::string_view right);

}  // namespace sevenfold

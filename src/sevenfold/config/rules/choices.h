#pragma once

#include <span>
#include <string_view>

#include "sevenfold/config/keys/key_tables.h"

namespace sevenfold::config {

// A key that takes one of these words (or null).
struct Choice {
  std::string_view key;
  std::string_view words;  // "a, b or c"
};

// Keys whose words nothing else in the rules reads.
std::span<const Choice> choices(Framework framework);

// Whether `word` is one of "a, b or c".
bool is_choice(std::string_view words, std::string_view word);

}  // namespace sevenfold::config

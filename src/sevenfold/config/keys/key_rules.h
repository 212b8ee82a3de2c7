#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sevenfold/config/keys/key_tables.h"

namespace sevenfold::config {

// The rule that a key's value must keep, for listings; the code is in rules/.
struct KeyRule {
  std::string_view key;
  std::string_view rule;
};

std::span<const KeyRule> key_rules(Framework framework = Framework::kMegatron);
// The rule of `key`, or its choices; empty if any value of its type will do.
std::string rule_of_key(std::string_view key, Framework framework = Framework::kMegatron);

}  // namespace sevenfold::config

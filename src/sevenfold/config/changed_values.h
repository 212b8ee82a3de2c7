#pragma once

#include <string>
#include <vector>

namespace sevenfold {

// A key that two runs give different values.
struct ChangedValue {
  std::string key;  // of the module's parameters, or dotted from the top ("sevenfold.ranks")
  std::string before, now;  // as JSON; "null" where a run does not have the key
};

// Between two resolved configurations (Config::resolved_yaml), by key. Without the keys that name a
// run and its folders, or say what it loads and saves. Throws ConfigError if `before` is no YAML.
std::vector<ChangedValue> changed_values(const std::string& before, const std::string& now);

}  // namespace sevenfold

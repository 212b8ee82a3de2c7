#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sevenfold/config/yaml/value.h"

namespace sevenfold::config {

// Type of a plain scalar under YAML 1.1, as PyYAML's safe loader resolves it: a float needs a dot,
// and an exponent a sign; yes/no/on/off are bools; 010 is octal; 1_000 is 1000; 1:30 is 90. Dates
// stay strings, and an integer beyond 64 bits becomes a float.
Value resolve_plain_scalar(const std::string& text);

// Type of a string that an environment substitution has changed: true/false in any case, -?digits,
// floats with or without exponent sign; anything else stays a string.
Value retype_substituted(const std::string& text);

using Environment = std::function<std::optional<std::string>(const std::string&)>;

// Replaces ${NAME} and ${NAME:default} in a string value; re-types it if that changed it. `unset`
// is called with the name of a variable that has neither value nor default and must throw.
Value interpolate(const Value& value, const Environment& environment,
                  const std::function<void(const Value&, const std::string& name)>& unset);

}  // namespace sevenfold::config

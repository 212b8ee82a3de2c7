#pragma once

#include <string>

#include "sevenfold/config/yaml/scalar.h"
#include "sevenfold/config/yaml/value.h"

namespace sevenfold::config {

// Parses one YAML document. Duplicate keys: the last wins; anchors, aliases and `<<` merge keys
// work; quoted scalars stay strings. Every value gets `origin` with its line. Throws ConfigError
// with the line.
Value parse_yaml(const std::string& text, const Origin& origin);

// Interpolates every string value below `value`, through maps and lists; keys are never touched.
// Throws ConfigError for a variable that is not set and has no default.
void interpolate_all(Value& value, const Environment& environment);

}  // namespace sevenfold::config

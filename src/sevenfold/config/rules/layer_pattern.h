#pragma once

#include <optional>
#include <string>

#include "sevenfold/config/yaml/value.h"

namespace sevenfold::config {

// Value of a moe_layer_freq expression: integers, [..] lists, *, + and parentheses, as Python reads
// them
// ("([0]*1+[1]*26)"). A text that keeps quote characters around the expression is read inside them.
// Nothing if it is not such an expression or would be longer than any model.
std::optional<Value> evaluate_layer_pattern(const std::string& text);

}  // namespace sevenfold::config

#pragma once

#include "sevenfold/config/yaml/value.h"

namespace sevenfold::config {

// The parameters of a torchtitan module by dotted names: {training: {steps: 5}} becomes
// {training.steps: 5}. Maps that are values of one key stay whole. Throws ConfigError where a plain
// value stands for a group of keys.
Value dotted_keys(const Value& nested);

// The way back.
Value nested_keys(const Value& dotted);

}  // namespace sevenfold::config

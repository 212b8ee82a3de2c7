#include "sevenfold/config/torchtitan/nested_keys.h"

#include "sevenfold/config/keys/key_tables.h"
#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

void add_dotted(Value& dotted, const std::string& prefix, const Value& map) {
  for (const auto& [key, value] : map.map) {
    const std::string name = prefix + key;
    if (!is_group(name)) {
      dotted.map.emplace(name, value);
      continue;
    }
    if (!value.is_map() && !value.is_null())
      raise<ConfigError>("config: {} {}={}: this is a group of keys; write a map of them",
                         value.origin.text(), name, brief(value));
    add_dotted(dotted, name + ".", value);
  }
}

}  // namespace

Value dotted_keys(const Value& nested) {
  Value dotted = Value::empty_map();
  add_dotted(dotted, "", nested);
  return dotted;
}

Value nested_keys(const Value& dotted) {
  Value nested = Value::empty_map();
  for (const auto& [name, value] : dotted.map) {
    Value* at = &nested;
    size_t start = 0;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', start)) {
      Value& next = at->map[name.substr(start, dot - start)];
      if (!next.is_map()) next = Value::empty_map();
      at = &next;
      start = dot + 1;
    }
    at->map[name.substr(start)] = value;
  }
  return nested;
}

}  // namespace sevenfold::config

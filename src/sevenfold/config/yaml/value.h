#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace sevenfold::config {

enum class OriginKind : uint8_t { kDefault, kPreset, kFile, kOverride, kFixUp };

// Where a value was written.
struct Origin {
  OriginKind kind = OriginKind::kDefault;
  std::string file;  // as shown to the user; empty unless kPreset or kFile
  int64_t line = 0;  // 1-based
  // "run.yaml:31", "built-in preset models/megatron/llama2_7B.yaml:4", "override", "built-in
  // default".
  std::string text() const;
};

enum class ValueKind : uint8_t { kNull, kBool, kInt, kFloat, kString, kList, kMap };

// A resolved YAML value that remembers its origin.
struct Value {
  ValueKind kind = ValueKind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0.0;
  std::string text;  // strings: the string; other scalars: their spelling in the source
  std::vector<Value> list;
  std::map<std::string, Value> map;
  Origin origin;

  static Value null();
  static Value of(bool value);
  static Value of(int64_t value);
  static Value of(double value);
  static Value of(std::string value);
  static Value empty_map();

  bool is_null() const { return kind == ValueKind::kNull; }
  bool is_map() const { return kind == ValueKind::kMap; }
  bool is_list() const { return kind == ValueKind::kList; }
  bool is_string() const { return kind == ValueKind::kString; }
  // Member of a map; nullptr if this is not a map or lacks the key.
  const Value* find(const std::string& key) const;
};

// "a string", "a map", ...: for messages.
std::string kind_name(ValueKind kind);

// `text` with line breaks and other control characters escaped: for messages and listings.
std::string one_line(const std::string& text);

// Value as one would write it, on one line: for messages and listings.
std::string brief(const Value& value);

nlohmann::json to_json(const Value& value);

// The same on one line; bytes that are not UTF-8 are replaced.
std::string to_json_text(const Value& value);

// YAML text that reads back as the same value under the YAML 1.1 rules of scalar.h. `indent` in
// spaces.
std::string to_yaml(const Value& value, int indent = 0);

// Deep merge: map into map recurses, anything else replaces.
void merge_into(Value& base, const Value& upper);

// Gives every value below (and at) `value` the same origin.
void set_origin(Value& value, const Origin& origin);

}  // namespace sevenfold::config

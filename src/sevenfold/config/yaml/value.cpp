#include "sevenfold/config/yaml/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sevenfold/config/yaml/scalar.h"

namespace sevenfold::config {
namespace {

// Shortest decimal form that a YAML 1.1 reader takes as a float: it needs a dot and a signed
// exponent.
std::string yaml_float(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  std::string text = fmt::format("{}", value);
  const size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos)
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Keys are written plain where a reader takes them for the same string.
std::string yaml_key(const std::string& key) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool is_word = std::all_of(key.begin(), key.end(), is_plain);
  return is_word && resolve_plain_scalar(key).is_string() ? key : quoted(key);
}

std::string yaml_map(const Value& value, int indent) {
  if (value.map.empty()) return " {}\n";
  std::string out = "\n";
  for (const auto& [key, member] : value.map)
    out += fmt::format("{:{}}{}:{}", "", indent, yaml_key(key), to_yaml(member, indent));
  return out;
}

std::string yaml_list(const Value& value, int indent) {
  if (value.list.empty()) return " []\n";
  std::string out = "\n";
  for (const Value& item : value.list)
    out += fmt::format("{:{}}-{}", "", indent, to_yaml(item, indent));
  return out;
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case OriginKind::kDefault:
      return "built-in default";
    case OriginKind::kOverride:
      return "override";
    case OriginKind::kFixUp:
      return "fix-up";
    case OriginKind::kPreset:
    case OriginKind::kFile:
      break;
  }
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

Value Value::null() {
  return Value{};
}

Value Value::of(bool value) {
  Value result;
  result.kind = ValueKind::kBool;
  result.boolean = value;
  result.text = value ? "true" : "false";
  return result;
}

Value Value::of(int64_t value) {
  Value result;
  result.kind = ValueKind::kInt;
  result.integer = value;
  result.text = std::to_string(value);
  return result;
}

Value Value::of(double value) {
  Value result;
  result.kind = ValueKind::kFloat;
  result.number = value;
  result.text = yaml_float(value);
  return result;
}

Value Value::of(std::string value) {
  Value result;
  result.kind = ValueKind::kString;
  result.text = std::move(value);
  return result;
}

Value Value::empty_map() {
  Value result;
  result.kind = ValueKind::kMap;
  return result;
}

const Value* Value::find(const std::string& key) const {
  if (kind != ValueKind::kMap) return nullptr;
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

std::string kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNull:
      return "null";
    case ValueKind::kBool:
      return "true or false";
    case ValueKind::kInt:
      return "an integer";
    case ValueKind::kFloat:
      return "a number";
    case ValueKind::kString:
      return "a string";
    case ValueKind::kList:
      return "a list";
    case ValueKind::kMap:
      return "a map";
  }
  return "a value";
}

std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      line += c;
    else if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else
      line += fmt::format("\\x{:02x}", byte);
  }
  return line;
}

std::string brief(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_list() || value.is_map()) return to_json_text(value);
  return one_line(value.text);
}

nlohmann::json to_json(const Value& value) {
  switch (value.kind) {
    case ValueKind::kNull:
      return nullptr;
    case ValueKind::kBool:
      return value.boolean;
    case ValueKind::kInt:
      return value.integer;
    case ValueKind::kFloat:
      return value.number;
    case ValueKind::kString:
      return value.text;
    case ValueKind::kList: {
      nlohmann::json items = nlohmann::json::array();
      for (const Value& item : value.list) items.push_back(to_json(item));
      return items;
    }
    case ValueKind::kMap: {
      nlohmann::json members = nlohmann::json::object();
      for (const auto& [key, member] : value.map) members[key] = to_json(member);
      return members;
    }
  }
  return nullptr;
}

std::string to_json_text(const Value& value) {
  return to_json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_yaml(const Value& value, int indent) {
  switch (value.kind) {
    case ValueKind::kNull:
      return " null\n";
    case ValueKind::kBool:
      return value.boolean ? " true\n" : " false\n";
    case ValueKind::kInt:
      return fmt::format(" {}\n", value.integer);
    case ValueKind::kFloat:
      return fmt::format(" {}\n", yaml_float(value.number));
    case ValueKind::kString:
      return fmt::format(" {}\n", quoted(value.text));
    case ValueKind::kList:
      return yaml_list(value, indent + 2);
    case ValueKind::kMap:
      return yaml_map(value, indent + 2);
  }
  return "\n";
}

void merge_into(Value& base, const Value& upper) {
  if (!base.is_map() || !upper.is_map()) {
    base = upper;
    return;
  }
  for (const auto& [key, value] : upper.map) {
    const auto found = base.map.find(key);
    if (found == base.map.end())
      base.map.emplace(key, value);
    else
      merge_into(found->second, value);
  }
}

void set_origin(Value& value, const Origin& origin) {
  value.origin = origin;
  for (Value& item : value.list) set_origin(item, origin);
  for (auto& [key, member] : value.map) set_origin(member, origin);
}

}  // namespace sevenfold::config

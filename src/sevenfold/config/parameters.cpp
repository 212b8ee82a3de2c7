#include "sevenfold/config/parameters.h"

#include <cmath>

#include "sevenfold/config/yaml/scalar.h"
#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

bool is_null_word(const Value& value) {
  return value.is_string() && (value.text == "null" || value.text == "None");
}

// A string may be a number that YAML 1.1 does not see (1e-5), or one from an environment variable.
Value read_string(const Value& value) {
  if (!value.is_string()) return value;
  if (is_null_word(value)) return Value::null();
  const Value retyped = retype_substituted(value.text);
  return retyped.is_string() ? resolve_plain_scalar(value.text) : retyped;
}

std::optional<Value> to_integer(const Value& value) {
  if (value.kind == ValueKind::kInt) return Value::of(value.integer);
  constexpr double kExact = 0x1p53;
  if (value.kind == ValueKind::kFloat && value.number == std::floor(value.number) &&
      std::fabs(value.number) <= kExact)
    return Value::of(static_cast<int64_t>(value.number));
  return std::nullopt;
}

std::optional<Value> to_bool(const Value& value) {
  if (value.kind == ValueKind::kBool) return Value::of(value.boolean);
  if (value.kind == ValueKind::kInt && (value.integer == 0 || value.integer == 1))
    return Value::of(value.integer == 1);
  return std::nullopt;
}

std::optional<Value> coerce_plain(const Value& value, KeyType type) {
  if (value.is_null()) return value;
  const Value read = read_string(value);
  switch (type) {
    case KeyType::kAny:
      return value;
    case KeyType::kMap:
      return value.is_map() ? std::optional<Value>(value) : std::nullopt;
    case KeyType::kString:
      if (value.is_map() || value.is_list()) return std::nullopt;
      return is_null_word(value) ? Value::null() : Value::of(value.text);
    case KeyType::kBool:
      return read.is_null() ? read : to_bool(read);
    case KeyType::kInt:
      return read.is_null() ? read : to_integer(read);
    case KeyType::kFloat:
      if (read.is_null() || read.kind == ValueKind::kFloat) return read;
      if (read.kind == ValueKind::kInt) return Value::of(static_cast<double>(read.integer));
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> coerce(const Value& value, KeyType type) {
  std::optional<Value> result = coerce_plain(value, type);
  if (result) result->origin = value.origin;
  return result;
}

std::optional<Value> default_of(const KeyInfo& key) {
  if (key.default_yaml == "\"\"") return Value::of(std::string());
  return coerce(resolve_plain_scalar(std::string(key.default_yaml)), key.type);
}

Parameters::Parameters(const Value& raw, Framework framework)
    : framework_(framework), values_(raw) {
  for (auto& [name, value] : values_.map) {
    const KeyInfo* key = find_key(name, framework);
    if (key == nullptr) continue;
    if (const auto coerced = coerce(value, key->type))
      value = *coerced;
    else if (key->status != KeyStatus::kNoEffect)
      raise<ConfigError>("config: {} is not {}; correct the value", where(name),
                         type_name(key->type));
  }
  defaults_ = Value::empty_map();
  for (const KeyInfo& key : all_keys(framework)) {
    const std::string name(key.name);
    if (values_.find(name) != nullptr) continue;
    const auto value = default_of(key);
    Value& map = key.status == KeyStatus::kNoEffect ? defaults_ : values_;
    map.map.emplace(name, value ? *value : Value::empty_map());
  }
}

const Value& Parameters::at(const std::string& key) const {
  const Value* value = values_.find(key);
  if (value == nullptr) value = defaults_.find(key);
  SEVENFOLD_CHECK(value != nullptr, "the key table has no key {}", key);
  return *value;
}

const Value& Parameters::required(const std::string& key) const {
  const Value& value = at(key);
  if (value.is_null()) {
    const KeyInfo* info = find_key(key, framework_);
    raise<ConfigError>("config: {}: this key needs a value ({}); set it", where(key),
                       info != nullptr ? type_name(info->type) : "any");
  }
  return value;
}

bool Parameters::boolean(const std::string& key) const {
  // Null switches off, as in Megatron.
  return at(key).is_null() ? false : at(key).boolean;
}
int64_t Parameters::integer(const std::string& key) const {
  return required(key).integer;
}
double Parameters::number(const std::string& key) const {
  return required(key).number;
}
std::string Parameters::string(const std::string& key) const {
  return required(key).text;
}

std::optional<int64_t> Parameters::optional_integer(const std::string& key) const {
  return is_null(key) ? std::nullopt : std::optional(at(key).integer);
}
std::optional<double> Parameters::optional_number(const std::string& key) const {
  return is_null(key) ? std::nullopt : std::optional(at(key).number);
}
std::optional<std::string> Parameters::optional_string(const std::string& key) const {
  return is_null(key) ? std::nullopt : std::optional(at(key).text);
}

bool Parameters::is_users(const std::string& key) const {
  const OriginKind kind = at(key).origin.kind;
  return kind == OriginKind::kFile || kind == OriginKind::kOverride;
}

std::string Parameters::where(const std::string& key) const {
  const auto translated = wheres_.find(key);
  if (translated != wheres_.end()) return translated->second;
  const Value* value = values_.find(key);
  if (value == nullptr) return key;
  return fmt::format("{} {}={}", value->origin.text(), key, brief(*value));
}

void Parameters::respell(const std::string& key, Value value) {
  value.origin = at(key).origin;
  values_.map[key] = std::move(value);
}

void Parameters::translate(const std::string& key, Value value, const std::string& where) {
  values_.map[key] = std::move(value);
  wheres_[key] = where;
}

void Parameters::fix(const std::string& key, Value value) {
  wheres_.erase(key);
  value.origin = Origin{OriginKind::kFixUp, "", 0};
  values_.map[key] = std::move(value);
}

}  // namespace sevenfold::config

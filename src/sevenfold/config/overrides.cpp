#include "sevenfold/config/overrides.h"

#include <array>

#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

constexpr std::array kTopLevelKeys = {"work_group", "user_name", "exp_name", "workspace"};

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const size_t dot = path.find('.', start);
    parts.push_back(path.substr(start, dot == std::string::npos ? dot : dot - start));
    if (dot == std::string::npos) return parts;
    start = dot + 1;
  }
}

bool has_empty_part(const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (part.empty()) return true;
  return false;
}

// Sets parts[0].parts[1]... below `base`; the maps on the way are made. False if a scalar is in the
// way.
bool set_path(Value& base, const std::vector<std::string>& parts, const Value& value) {
  Value* at = &base;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    Value& next = at->map[parts[i]];
    if (next.is_null()) {
      next = Value::empty_map();
      next.origin = value.origin;
    }
    if (!next.is_map()) return false;
    at = &next;
  }
  const auto found = at->map.find(parts.back());
  if (found != at->map.end())
    merge_into(found->second, value);
  else
    at->map.emplace(parts.back(), value);
  return true;
}

// A text that is not YAML, such as [0]*1+[1]*7, is meant as a string unless it looks like a broken
// list or map.
Value parse_word(const std::string& text, const std::string& word) {
  const Origin origin{OriginKind::kOverride, "override", 0};
  Value value;
  try {
    value = parse_yaml(text, origin);
  } catch (const ConfigError&) {
    if (text.find('*') == std::string::npos && (text.starts_with('{') || text.starts_with('[')))
      raise<ConfigError>(
          "config: override {}: `{}` is not readable as YAML; check brackets and quotes", word,
          text);
    value = Value::of(text);
  }
  set_origin(value, Origin{OriginKind::kOverride, "", 0});
  return value;
}

void apply_word(Experiment& experiment, const std::string& word) {
  const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const size_t equals = bare.find('=');
  if (equals == std::string::npos || equals == 0)
    raise<ConfigError>(
        "config: override `{}` is not of the form key=value; write for example lr=1.0e-4", word);
  std::vector<std::string> path = split_path(bare.substr(0, equals));
  if (has_empty_part(path))
    raise<ConfigError>(
        "config: override `{}` has an empty part in its key; write for example "
        "sevenfold.shuffle=false",
        word);
  const Value value = parse_word(bare.substr(equals + 1), word);
  Value* target = &experiment.parameters;
  if (path.size() > 3 && path[0] == "modules" && path[2] == "overrides")
    path.erase(path.begin(), path.begin() + 3);
  if (path[0] == "sevenfold" && path.size() > 1) {
    target = &experiment.sevenfold;
    path.erase(path.begin());
  } else if (path.size() == 1) {
    for (const char* key : kTopLevelKeys)
      if (path[0] == key) target = &experiment.top;
  }
  if (!set_path(*target, path, value))
    raise<ConfigError>(
        "config: override {}: a part of this key already holds a plain value, not a map", word);
}

}  // namespace

void apply_overrides(Experiment& experiment, const std::vector<std::string>& words) {
  for (const std::string& word : words) apply_word(experiment, word);
}

void expand_dotted_keys(Value& overrides, std::vector<std::string>& notices) {
  Value expanded = Value::empty_map();
  expanded.origin = overrides.origin;
  for (const auto& [key, value] : overrides.map)
    if (key.find('.') == std::string::npos) expanded.map.emplace(key, value);
  for (const auto& [key, value] : overrides.map) {
    if (key.find('.') == std::string::npos) continue;
    const std::vector<std::string> parts = split_path(key);
    if (has_empty_part(parts) || !set_path(expanded, parts, value))
      raise<ConfigError>("config: {} {}={}: this dotted key cannot be expanded; write nested maps",
                         value.origin.text(), key, brief(value));
    notices.push_back(
        fmt::format("{} {}={}: the dotted key is read as nested maps (Primus itself ignores it)",
                    value.origin.text(), key, brief(value)));
  }
  overrides = std::move(expanded);
}

}  // namespace sevenfold::config

#include "sevenfold/config/yaml/parse.h"

#include <yaml-cpp/yaml.h>

#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

// Aliases can make a short text mean an endless tree, or one of billions of values.
constexpr int kMaxDepth = 100;
constexpr int64_t kMaxValues = 1'000'000;

class Converter {
 public:
  explicit Converter(const Origin& origin) : origin_(origin) {}

  Value convert(const YAML::Node& node, int64_t line, int depth) {
    Origin origin = origin_;
    origin.line = line;
    if (depth > kMaxDepth || ++num_values_ > kMaxValues)
      raise<ConfigError>(
          "config: {}: more than {} nested levels or {} values; does an alias contain itself?",
          origin.text(), kMaxDepth, kMaxValues);
    Value value = convert_content(node, origin, depth);
    value.origin = origin;
    return value;
  }

 private:
  Value convert_content(const YAML::Node& node, const Origin& origin, int depth) {
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Value::null();
      case YAML::NodeType::Scalar:
        return convert_scalar(node, origin);
      case YAML::NodeType::Sequence: {
        Value value;
        value.kind = ValueKind::kList;
        for (const YAML::Node& item : node)
          value.list.push_back(convert(item, item.Mark().line + 1, depth + 1));
        return value;
      }
      case YAML::NodeType::Map:
        return convert_map(node, depth);
    }
    return Value::null();
  }

  Value convert_scalar(const YAML::Node& node, const Origin& origin) {
    const std::string& tag = node.Tag();
    if (tag == "?" || tag.empty()) return resolve_plain_scalar(node.Scalar());
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Value::of(node.Scalar());
    const Value plain = resolve_plain_scalar(node.Scalar());
    if (tag == "tag:yaml.org,2002:int" && plain.kind == ValueKind::kInt) return plain;
    if (tag == "tag:yaml.org,2002:bool" && plain.kind == ValueKind::kBool) return plain;
    if (tag == "tag:yaml.org,2002:null") return Value::null();
    if (tag == "tag:yaml.org,2002:float") {
      const Value number = retype_substituted(node.Scalar());
      if (number.kind == ValueKind::kFloat) return number;
      if (number.kind == ValueKind::kInt) return Value::of(static_cast<double>(number.integer));
    }
    raise<ConfigError>("config: {}: the tag {} does not fit `{}`; leave it out", origin.text(), tag,
                       node.Scalar());
  }

  Value convert_map(const YAML::Node& node, int depth) {
    Value value = Value::empty_map();
    Value merged = Value::empty_map();
    for (const auto& entry : node) {
      const YAML::Node& key = entry.first;
      const int64_t line = key.Mark().line + 1;
      if (!key.IsScalar() && !key.IsNull())
        raise<ConfigError>("config: {}:{}: a key is a list or a map; keys are plain words",
                           origin_.file, line);
      const std::string name = key.IsNull() ? "null" : key.Scalar();
      Value member = convert(entry.second, line, depth + 1);
      if (name == "<<" && key.Tag() != "!")
        add_merge_key(merged, member);
      else
        value.map[name] = std::move(member);
    }
    for (auto& [name, member] : merged.map) value.map.emplace(name, std::move(member));
    return value;
  }

  // `<<: *defaults` or a list of them: earlier ones win, the map's own keys beat all.
  void add_merge_key(Value& merged, const Value& source) {
    if (source.is_list()) {
      for (const Value& item : source.list) add_merge_key(merged, item);
      return;
    }
    if (!source.is_map())
      raise<ConfigError>(
          "config: {} <<={} is not a map; the merge key takes a map or a list of maps",
          source.origin.text(), brief(source));
    for (const auto& [name, member] : source.map) merged.map.emplace(name, member);
  }

  Origin origin_;
  int64_t num_values_ = 0;
};

}  // namespace

Value parse_yaml(const std::string& text, const Origin& origin) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      raise<ConfigError>("config: {}: holds {} YAML documents; keep one", origin.file,
                         documents.size());
    if (documents.empty()) return Value::null();
    return Converter(origin).convert(documents[0], documents[0].Mark().line + 1, 0);
  } catch (const YAML::Exception& error) {
    Origin place = origin;
    place.line = error.mark.is_null() ? 0 : error.mark.line + 1;
    raise<ConfigError>("config: {}: not readable as YAML ({}); correct that line", place.text(),
                       error.msg);
  }
}

void interpolate_all(Value& value, const Environment& environment) {
  for (Value& item : value.list) interpolate_all(item, environment);
  for (auto& [key, member] : value.map) interpolate_all(member, environment);
  if (!value.is_string()) return;
  value = interpolate(value, environment, [](const Value& where, const std::string& name) {
    raise<ConfigError>(
        "config: {}: `{}` needs the environment variable {}, which is not set; set it, or give a "
        "default: ${{{}:...}}",
        where.origin.text(), where.text, name, name);
  });
}

}  // namespace sevenfold::config

#include "sevenfold/config/changed_values.h"

#include <map>
#include <set>

#include "sevenfold/config/yaml/parse.h"

namespace sevenfold {
namespace {

using config::Value;
using config::ValueKind;

using Values = std::map<std::string, std::string>;

// Differ from run to run by their nature.
const std::set<std::string>& names_of_runs() {
  static const std::set<std::string> kNames = {"workspace",
                                               "work_group",
                                               "user_name",
                                               "exp_name",
                                               "save",
                                               "load",
                                               "ckpt_step",
                                               "finetune",
                                               "pretrained_checkpoint",
                                               "checkpoint.initial_load_path",
                                               "checkpoint.load_step",
                                               "checkpoint.folder"};
  return kNames;
}

void add(Values& values, const std::string& key, const Value& value) {
  if (value.kind != ValueKind::kMap) {
    values[key] = to_json_text(value);
    return;
  }
  const std::string prefix = key.empty() ? "" : key + ".";
  for (const auto& [name, inner] : value.map) add(values, prefix + name, inner);
}

// Modules are flattened: there is one, whose parameters are meant.
Values values_of(const std::string& yaml) {
  Value root = config::parse_yaml(yaml, {});
  Values values;
  for (const auto& [name, module] : root.map["modules"].map) add(values, "", module);
  root.map.erase("modules");
  add(values, "", root);
  for (const std::string& name : names_of_runs()) values.erase(name);
  return values;
}

std::string value_or_null(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "null" : found->second;
}

}  // namespace

std::vector<ChangedValue> changed_values(const std::string& before, const std::string& now) {
  const Values earlier = values_of(before), later = values_of(now);
  Values keys = earlier;
  keys.insert(later.begin(), later.end());
  std::vector<ChangedValue> changes;
  for (const auto& [key, value] : keys) {
    ChangedValue change{key, value_or_null(earlier, key), value_or_null(later, key)};
    if (change.before != change.now) changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace sevenfold

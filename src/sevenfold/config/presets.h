#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sevenfold/config/yaml/parse.h"

namespace sevenfold::config {

// A preset compiled into the program; `path` is relative to configs/
// ("models/megatron/llama2_7B.yaml").
struct BuiltInPreset {
  std::string_view path;
  std::string_view text;
};

// Written by embed_presets.cmake into the build tree, sorted by path.
const std::vector<BuiltInPreset>& built_in_presets();

// A YAML file on disk or among the built-in presets.
struct YamlSource {
  OriginKind kind = OriginKind::kFile;
  bool built_in = false;
  std::string path;  // on disk, or relative to the built-in configs/
  // As shown to the user.
  std::string display() const;
};

// Where presets are looked up: the built-in ones, or a directory.
class PresetStore {
 public:
  // `directory`: a Primus checkout (holds primus/configs) or its configs folder; empty: the
  // built-in presets.
  explicit PresetStore(const std::string& directory);

  // The preset `name` (".yaml" is appended if it ends in neither .yaml nor .yml) in folder
  // "models/megatron". `named_by` is the value that asks for it. Throws ConfigError if it is
  // missing or lies outside the store.
  YamlSource find(const std::string& folder, const std::string& name, const std::string& key,
                  const Value& named_by) const;

 private:
  std::string root_;  // empty: built-in
};

// Reads a file and everything that it extends: parse, interpolate, merge the bases in order, then
// the file's own keys on top. Throws ConfigError for what is missing, unreadable, not a map, or
// cyclic.
Value load_yaml_tree(const YamlSource& source, const Environment& environment);

}  // namespace sevenfold::config

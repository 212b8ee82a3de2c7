#include "sevenfold/config/presets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"

namespace sevenfold::config {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> find_built_in(const std::string& path) {
  for (const BuiltInPreset& preset : built_in_presets())
    if (preset.path == path) return std::string(preset.text);
  return std::nullopt;
}

// "llama2_7B.yaml, llama2_13B.yaml, ...": those of a folder that look most like `wanted`.
std::string nearest_names(const std::string& folder, const std::string& wanted) {
  constexpr size_t kMost = 6;
  std::vector<std::pair<int64_t, std::string>> names;
  for (const BuiltInPreset& preset : built_in_presets()) {
    if (!preset.path.starts_with(folder + "/")) continue;
    const std::string name(preset.path.substr(folder.size() + 1));
    names.emplace_back(edit_distance(name, wanted), name);
  }
  std::sort(names.begin(), names.end());
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    list += (i == 0 ? "" : ", ") + names[i].second;
  if (names.size() > kMost) list += fmt::format(" (or another of {})", names.size());
  return list.empty() ? "another framework" : list;
}

bool source_exists(const YamlSource& source) {
  std::error_code ignored;
  return source.built_in ? find_built_in(source.path).has_value()
                         : fs::exists(source.path, ignored);
}

// `named` says who asks for the file, for the message: "run.yaml:1 extends=base.yaml: ", or
// nothing.
std::string read_source(const YamlSource& source, const std::string& named) {
  if (source.built_in) {
    auto text = find_built_in(source.path);
    if (!text) raise<ConfigError>("config: {}there is no {}", named, source.display());
    return *text;
  }
  std::error_code ignored;
  if (!fs::exists(source.path, ignored))
    raise<ConfigError>("config: {}no such file: {}; check the path", named, source.path);
  if (fs::is_directory(source.path, ignored))
    raise<ConfigError>("config: {}{} is a directory; name a YAML file", named, source.path);
  std::ifstream file(source.path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    raise<ConfigError>("config: {}cannot read {}: {}", named, source.path, std::strerror(errno));
  return text.str();
}

// Entry of `extends`, relative to the file that names it.
YamlSource resolve_entry(const YamlSource& source, const std::string& entry) {
  YamlSource result = source;
  result.path = (fs::path(source.path).parent_path() / entry).lexically_normal().string();
  return result;
}

std::string identity(const YamlSource& source) {
  if (source.built_in) return source.path;
  std::error_code ignored;
  const fs::path canonical = fs::weakly_canonical(source.path, ignored);
  return canonical.empty() ? source.path : canonical.string();
}

std::vector<Value> extends_entries(const Value& extends) {
  std::vector<Value> entries = extends.is_list() ? extends.list : std::vector<Value>{extends};
  if (extends.is_null()) entries.clear();
  for (const Value& entry : entries)
    if (!entry.is_string())
      raise<ConfigError>(
          "config: {} extends={} is not a file name; write extends: base.yaml or a list of names",
          extends.origin.text(), brief(entry));
  return entries;
}

class TreeLoader {
 public:
  explicit TreeLoader(const Environment& environment) : environment_(environment) {}

  Value load(const YamlSource& source, const std::string& named) {
    const std::string text = read_source(source, named);
    Value own = parse_yaml(text, Origin{source.kind, source.display(), 0});
    if (own.is_null())
      raise<ConfigError>("config: {}: is empty; an experiment is a map of keys", source.display());
    if (!own.is_map())
      raise<ConfigError>("config: {}: holds {} where a map of keys is needed", own.origin.text(),
                         kind_name(own.kind));
    interpolate_all(own, environment_);
    const auto extends = own.map.find("extends");
    if (extends == own.map.end()) return own;
    const std::vector<Value> entries = extends_entries(extends->second);
    own.map.erase(extends);
    chain_.push_back(source);
    Value merged = Value::empty_map();
    merged.origin = own.origin;
    for (const Value& entry : entries) merge_into(merged, load_entry(source, entry));
    chain_.pop_back();
    merge_into(merged, own);
    return merged;
  }

 private:
  Value load_entry(const YamlSource& source, const Value& entry) {
    const YamlSource base = resolve_entry(source, entry.text);
    for (size_t i = 0; i < chain_.size(); ++i) {
      if (identity(chain_[i]) != identity(base)) continue;
      std::string cycle;
      for (size_t j = i; j < chain_.size(); ++j) cycle += chain_[j].display() + " -> ";
      raise<ConfigError>("config: {} extends={} closes a cycle ({}{}); remove one of these lines",
                         entry.origin.text(), entry.text, cycle, base.display());
    }
    return load(base, fmt::format("{} extends={}: ", entry.origin.text(), entry.text));
  }

  const Environment& environment_;
  std::vector<YamlSource> chain_;  // files being read, outermost first
};

}  // namespace

std::string YamlSource::display() const {
  return built_in ? "built-in preset " + path : path;
}

PresetStore::PresetStore(const std::string& directory) {
  if (directory.empty()) return;
  std::error_code ignored;
  const fs::path checkout = fs::path(directory) / "primus" / "configs";
  if (fs::is_directory(checkout, ignored))
    root_ = checkout.string();
  else if (fs::is_directory(fs::path(directory) / "modules", ignored))
    root_ = directory;
  else
    raise<ConfigError>(
        "config: --presets {}: holds neither primus/configs nor modules; name a Primus checkout or "
        "its configs folder",
        directory);
}

YamlSource PresetStore::find(const std::string& folder, const std::string& name,
                             const std::string& key, const Value& named_by) const {
  const bool has_suffix = name.ends_with(".yaml") || name.ends_with(".yml");
  const std::string file = has_suffix ? name : name + ".yaml";
  const std::string relative = (fs::path(folder) / file).lexically_normal().string();
  const std::string where = fmt::format("config: {} {}={}", named_by.origin.text(), key, name);
  if (relative.starts_with("..") || fs::path(file).is_absolute())
    raise<ConfigError>("{}: path traversal: {} leaves the presets folder; name a preset below {}",
                       where, relative, folder);
  YamlSource source{OriginKind::kPreset, root_.empty(), relative};
  if (!root_.empty()) source.path = (fs::path(root_) / relative).string();
  if (source_exists(source)) return source;
  if (!source.built_in)
    raise<ConfigError>("{}: no preset at {}; check the name", where, source.path);
  raise<ConfigError>(
      "{}: there is no built-in preset {}; use {}, or read a Primus checkout with --presets DIR",
      where, relative, nearest_names(folder, file));
}

Value load_yaml_tree(const YamlSource& source, const Environment& environment) {
  return TreeLoader(environment).load(source, "");
}

}  // namespace sevenfold::config

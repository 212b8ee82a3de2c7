#include "sevenfold/config/key_policy.h"

#include <algorithm>

#include "sevenfold/config/keys/key_tables.h"
#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

constexpr std::string_view kTopLevel[] = {"work_group", "user_name", "exp_name",
                                          "workspace",  "modules",   "platform",
                                          "env",        "extends",   "sevenfold"};
// Keys of a module beside its parameters.
constexpr std::string_view kModuleLevel[] = {"framework", "config", "model",
                                             "overrides", "name",   "params"};

constexpr std::string_view kEnvironment =
    "variables of other programs: nothing here reads them, so none is exported";

class KeyChecker {
 public:
  KeyChecker(Framework framework, bool strict) : framework_(framework), strict_(strict) {
    for (const KeyInfo& key : all_keys(framework_)) add(key.name);
    if (framework_ == Framework::kMegatron)
      for (const std::string_view name : nested_megatron_names()) add(name);
    known_.insert(known_.end(), std::begin(kModuleLevel), std::end(kModuleLevel));
  }

  void check_top(const Value& top) {
    for (const auto& [key, value] : top.map) {
      if (key == "env")
        note_ignored(key, value, kEnvironment);
      else if (std::find(std::begin(kTopLevel), std::end(kTopLevel), key) != std::end(kTopLevel))
        ++report_.counts.used;
      else
        note_unknown(key, key, value, {std::begin(kTopLevel), std::end(kTopLevel)});
    }
  }

  // `prefix` is "" or "parallelism.": the place of `map` among the parameters.
  void check_parameters(const Value& map, const std::string& prefix) {
    const std::vector<std::string_view> siblings = members_of(prefix);
    for (const auto& [key, value] : map.map) {
      const bool known = std::find(siblings.begin(), siblings.end(), key) != siblings.end();
      const bool has_members = value.is_map() && known && !members_of(prefix + key + ".").empty();
      if (has_members)
        check_parameters(value, prefix + key + ".");
      else if (is_written_by_user(value))
        known ? count(prefix, key, value) : note_unknown(prefix + key, key, value, siblings);
    }
  }

  KeyReport report() && { return std::move(report_); }

 private:
  static bool is_written_by_user(const Value& value) {
    return value.origin.kind == OriginKind::kFile || value.origin.kind == OriginKind::kOverride;
  }

  // A dotted name, and the maps that it lies in.
  void add(std::string_view name) {
    for (size_t end = name.find('.'); end != std::string_view::npos; end = name.find('.', end + 1))
      if (const auto group = name.substr(0, end);
          std::find(known_.begin(), known_.end(), group) == known_.end())
        known_.push_back(group);
    known_.push_back(name);
  }

  // Last parts of the known names directly below `prefix`.
  std::vector<std::string_view> members_of(const std::string& prefix) const {
    std::vector<std::string_view> members;
    for (const std::string_view name : known_) {
      if (!name.starts_with(prefix)) continue;
      const std::string_view rest = name.substr(prefix.size());
      if (rest.find('.') == std::string_view::npos) members.push_back(rest);
    }
    return members;
  }

  void count(const std::string& prefix, const std::string& key, const Value& value) {
    if (prefix.empty() &&
        std::find(std::begin(kModuleLevel), std::end(kModuleLevel), key) != std::end(kModuleLevel))
      return;
    const KeyInfo* info = find_key(prefix + key, framework_);
    if (info == nullptr) info = find_key(prefix.substr(0, prefix.find('.')), framework_);
    if (info == nullptr || info->status != KeyStatus::kNoEffect) {
      ++report_.counts.used;
      return;
    }
    note_ignored(prefix + key, value, info->help);
  }

  void note_ignored(const std::string& name, const Value& value, std::string_view reason) {
    ++report_.counts.ignored;
    report_.ignored.push_back(
        KeyNote{one_line(name), one_line(value.origin.text()), std::string(reason)});
  }

  void note_unknown(const std::string& name, const std::string& key, const Value& value,
                    const std::vector<std::string_view>& siblings) {
    const std::string where =
        fmt::format("config: {} {}={}", value.origin.text(), name, brief(value));
    if (const auto suggestion = suggest(key, siblings)) {
      const std::string full = name.substr(0, name.size() - key.size()) + *suggestion;
      raise<ConfigError>("{}: there is no key {}; did you mean {}?", where, name, full);
    }
    if (strict_)
      raise<ConfigError>(
          "{}: the key {} is not known, and --strict is given; take it out or leave --strict",
          where, name);
    ++report_.counts.unknown;
    report_.unknown.push_back(KeyNote{one_line(name), one_line(value.origin.text()), "not known"});
  }

  Framework framework_;
  bool strict_;
  std::vector<std::string_view> known_;
  KeyReport report_;
};

}  // namespace

KeyReport check_keys(const Experiment& experiment, bool strict) {
  KeyChecker checker(framework_of(experiment.framework), strict);
  checker.check_top(experiment.top);
  checker.check_parameters(experiment.parameters, "");
  return std::move(checker).report();
}

}  // namespace sevenfold::config

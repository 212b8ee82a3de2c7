#include "sevenfold/config/keys/key_tables.h"

#include <algorithm>

#include "sevenfold/core/units.h"

namespace sevenfold::config {
namespace {

constexpr size_t kShortName = 5;

std::vector<KeyInfo> collect_keys(std::initializer_list<std::span<const KeyInfo>> tables) {
  std::vector<KeyInfo> keys;
  for (const auto& table : tables) keys.insert(keys.end(), table.begin(), table.end());
  std::sort(keys.begin(), keys.end(),
            [](const KeyInfo& a, const KeyInfo& b) { return a.name < b.name; });
  return keys;
}

}  // namespace

Framework framework_of(std::string_view name) {
  return name == "torchtitan" ? Framework::kTorchTitan : Framework::kMegatron;
}

const std::vector<KeyInfo>& all_keys(Framework framework) {
  static const std::vector<KeyInfo> megatron = collect_keys(
      {model_keys(), parallel_keys(), training_keys(), data_keys(), checkpoint_keys()});
  static const std::vector<KeyInfo> torchtitan =
      collect_keys({torchtitan_run_keys(), torchtitan_system_keys()});
  return framework == Framework::kMegatron ? megatron : torchtitan;
}

bool is_group(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  const auto& keys = all_keys(Framework::kTorchTitan);
  return std::any_of(keys.begin(), keys.end(),
                     [&](const KeyInfo& key) { return key.name.starts_with(prefix); });
}

const KeyInfo* find_key(std::string_view name, Framework framework) {
  const auto& keys = all_keys(framework);
  const auto found =
      std::lower_bound(keys.begin(), keys.end(), name,
                       [](const KeyInfo& key, std::string_view text) { return key.name < text; });
  return found != keys.end() && found->name == name ? &*found : nullptr;
}

std::string_view type_name(KeyType type) {
  switch (type) {
    case KeyType::kBool:
      return "true or false";
    case KeyType::kInt:
      return "an integer";
    case KeyType::kFloat:
      return "a number";
    case KeyType::kString:
      return "a string";
    case KeyType::kMap:
      return "a map";
    case KeyType::kAny:
      break;
  }
  return "any";
}

std::string_view status_name(KeyStatus status) {
  switch (status) {
    case KeyStatus::kActs:
      return "acts";
    case KeyStatus::kNoEffect:
      return "no effect";
    case KeyStatus::kNotYet:
      break;
  }
  return "not yet";
}

std::optional<std::string> suggest(std::string_view name,
                                   const std::vector<std::string_view>& known) {
  std::optional<std::string> best;
  int64_t best_distance = 3;
  for (const std::string_view candidate : known) {
    const size_t longer = std::max(name.size(), candidate.size());
    const size_t shorter = std::min(name.size(), candidate.size());
    if (longer - shorter > 2) continue;
    const int64_t distance = edit_distance(name, candidate);
    const int64_t limit = name.size() <= kShortName ? 1 : 2;
    if (distance == 0 || distance > limit || distance >= best_distance) continue;
    best = std::string(candidate);
    best_distance = distance;
  }
  return best;
}

}  // namespace sevenfold::config

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sevenfold/config/yaml/value.h"

namespace sevenfold::config {

enum class KeyType : uint8_t { kBool, kInt, kFloat, kString, kMap, kAny };

// The vocabulary that an experiment is written in.
enum class Framework : uint8_t { kMegatron, kTorchTitan };
// Of the names "megatron" and "torchtitan", which load_experiment lets pass.
Framework framework_of(std::string_view name);

enum class KeyStatus : uint8_t {
  kActs,      // read by the rules
  kNoEffect,  // cannot change the result or the model here; `help` says why
  kNotYet,  // would change them and is not there yet: any value but the neutral ones is refused by
            // train and verify
};

// One key. A new one is one row in the table of its topic. Names of the torchtitan vocabulary are
// dotted: parallelism.tensor_parallel_degree.
struct KeyInfo {
  std::string_view name;
  KeyType type;
  std::string_view default_yaml;
  KeyStatus status;
  std::string_view help;
  std::string_view neutral =
      {};  // kNotYet: one more value that changes nothing (default and null never do)
};

// The tables of the megatron vocabulary, by topic.
std::span<const KeyInfo> model_keys();
std::span<const KeyInfo> parallel_keys();
std::span<const KeyInfo> training_keys();
std::span<const KeyInfo> data_keys();
std::span<const KeyInfo> checkpoint_keys();
// Dotted names of members of its nested keys, for the typo rule.
std::span<const std::string_view> nested_megatron_names();
// Those of the torchtitan vocabulary.
std::span<const KeyInfo> torchtitan_run_keys();
std::span<const KeyInfo> torchtitan_system_keys();

// All keys of a vocabulary, sorted by name.
const std::vector<KeyInfo>& all_keys(Framework framework = Framework::kMegatron);
const KeyInfo* find_key(std::string_view name, Framework framework = Framework::kMegatron);
// Whether `name` is a map of keys of the torchtitan vocabulary: parallelism.
bool is_group(std::string_view name);
std::string_view type_name(KeyType type);
std::string_view status_name(KeyStatus status);

// The known name that `name` is a likely misspelling of: at edit distance 1 or 2 (1 for five
// letters or less).
std::optional<std::string> suggest(std::string_view name,
                                   const std::vector<std::string_view>& known);

}  // namespace sevenfold::config

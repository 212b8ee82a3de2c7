#include "sevenfold/cli/key_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sevenfold/config/keys/key_rules.h"
#include "sevenfold/config/keys/key_tables.h"

namespace sevenfold::cli {
namespace {

using config::Framework;
using config::KeyInfo;
using config::KeyStatus;
using nlohmann::json;

// Bars would end a cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string{c};
  return escaped;
}

constexpr std::pair<Framework, const char*> kVocabularies[] = {
    {Framework::kMegatron, "megatron"}, {Framework::kTorchTitan, "torchtitan"}};

std::string table(Framework framework, KeyStatus status) {
  std::string text = "| key | type | default | meaning | rule |\n|---|---|---|---|---|\n";
  for (const KeyInfo& key : config::all_keys(framework))
    if (key.status == status)
      text += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", key.name, type_name(key.type),
                          cell(key.default_yaml), cell(key.help),
                          cell(config::rule_of_key(key.name, framework)));
  return text;
}

std::string tables(Framework framework) {
  return "### Keys that act\n\n" + table(framework, KeyStatus::kActs) +
         "\n### Keys that are not supported yet\n\n" + table(framework, KeyStatus::kNotYet) +
         "\n### Keys without effect\n\n" + table(framework, KeyStatus::kNoEffect);
}

// A vocabulary in columns.
std::string rows(Framework framework, const char* name) {
  size_t width = 0;
  for (const KeyInfo& key : config::all_keys(framework)) width = std::max(width, key.name.size());
  std::string text =
      fmt::format("{:<{}}  {:<15}{:<22}{:<11}{}\n", fmt::format("{} key", name), width, "type",
                  "default", "status", "meaning, or why it has no effect [rule]");
  for (const KeyInfo& key : config::all_keys(framework)) {
    const std::string rule = config::rule_of_key(key.name, framework);
    text += fmt::format("{:<{}}  {:<15}{:<22}{:<11}{}{}\n", key.name, width, type_name(key.type),
                        key.default_yaml, status_name(key.status), key.help,
                        rule.empty() ? "" : " [" + rule + "]");
  }
  return text;
}

}  // namespace

std::string key_listing_text() {
  std::string text;
  for (const auto& [framework, name] : kVocabularies) text += rows(framework, name) + "\n";
  return text +
         "`acts`: read; `no effect`: accepted; `not yet`: train and verify refuse any value but "
         "the default.\nnext: sevenfold config FILE\n";
}

std::string key_listing_json() {
  json keys = json::array();
  for (const auto& [framework, name] : kVocabularies)
    for (const KeyInfo& key : config::all_keys(framework))
      keys.push_back({{"framework", name},
                      {"key", key.name},
                      {"type", type_name(key.type)},
                      {"default", key.default_yaml},
                      {"status", status_name(key.status)},
                      {"help", key.help},
                      {"rule", config::rule_of_key(key.name, framework)}});
  return json{{"keys", keys}}.dump(2) + "\n";
}

std::string key_listing_markdown() {
  return "# Configuration keys\n\n"
         "Every key of both vocabularies, as `sevenfold config --help-keys --markdown` prints "
         "them; a "
         "test compares\nthis page with that. A default is the value where neither a preset nor "
         "the "
         "experiment sets the key. M is the\nnumber of micro batches of a step. What "
         "[configuration](configuration.md) says of the three kinds holds.\n\n"
         "## `framework: megatron`\n\n" +
         tables(Framework::kMegatron) + "\n## `framework: torchtitan`\n\n" +
         "`a.b` is the key b in the map a.\n\n" + tables(Framework::kTorchTitan);
}

}  // namespace sevenfold::cli

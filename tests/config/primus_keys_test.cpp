// Every key that Primus documents is known, with its type and with the value that it has there when
// nobody sets it.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "config/experiment_files.h"
#include "sevenfold/config/keys/key_tables.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/config/yaml/scalar.h"

namespace sevenfold::config {
namespace {

struct DocumentedKey {
  std::string name;
  KeyType type = KeyType::kAny;
  std::string value;  // "-": none documented
};

std::optional<KeyType> type_of(const std::string& word) {
  if (word == "bool") return KeyType::kBool;
  if (word == "int") return KeyType::kInt;
  if (word == "float") return KeyType::kFloat;
  if (word == "string") return KeyType::kString;
  if (word == "map") return KeyType::kMap;
  return word == "any" ? std::optional(KeyType::kAny) : std::nullopt;
}

std::vector<DocumentedKey> documented_keys() {
  std::ifstream file(SEVENFOLD_SOURCE_DIR "/tests/config/primus_keys.txt");
  std::vector<DocumentedKey> keys;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    DocumentedKey key;
    std::string type;
    words >> key.name >> type >> key.value;
    const auto known = type_of(type);
    EXPECT_TRUE(known.has_value() && !key.value.empty()) << line;
    key.type = known.value_or(KeyType::kAny);
    keys.push_back(key);
  }
  return keys;
}

Parameters plain_parameters() {
  std::string text = small_llama();
  text.replace(text.find("llama2_7B"), 9, "language_model");
  text.erase(text.find("    overrides:"));
  return Parameters(load_raw(text).parameters);
}

std::string shown(const std::string& scalar, KeyType type) {
  const auto value =
      coerce(scalar == "\"\"" ? Value::of(std::string()) : resolve_plain_scalar(scalar), type);
  return value ? to_json_text(*value) : "(not of its type)";
}

TEST(PrimusKeys, AreKnownWithTypeAndValue) {
  const Parameters parameters = plain_parameters();
  std::set<std::string> names;
  for (const DocumentedKey& key : documented_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name << " stands twice";
    const KeyInfo* info = find_key(key.name);
    ASSERT_NE(info, nullptr) << key.name;
    EXPECT_EQ(type_name(info->type), type_name(key.type)) << key.name;
    if (key.value == "-") continue;
    EXPECT_EQ(to_json_text(parameters.at(key.name)), shown(key.value, key.type)) << key.name;
  }
  EXPECT_GT(names.size(), 390u);
}

}  // namespace
}  // namespace sevenfold::config

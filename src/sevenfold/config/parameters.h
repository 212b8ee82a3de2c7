#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/config/keys/key_tables.h"

namespace sevenfold::config {

// The module's parameters, coerced by the declared types, with the table's defaults for what is not
// set; and what the rules have to say about them. The rules read it, fix values up, and write a
// Config. A key without effect that nobody set has its default too, but is not among values().
class Parameters {
 public:
  // Throws ConfigError for a value that does not fit the type of a key that acts.
  // `raw`: a map from the names of the table, dotted ones for torchtitan.
  explicit Parameters(const Value& raw, Framework framework = Framework::kMegatron);

  // Each is for a key of the table; the plain ones throw ConfigError on null.
  bool boolean(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  std::string string(const std::string& key) const;
  std::optional<int64_t> optional_integer(const std::string& key) const;
  std::optional<double> optional_number(const std::string& key) const;
  std::optional<std::string> optional_string(const std::string& key) const;
  bool is_null(const std::string& key) const { return at(key).is_null(); }
  // Whether the experiment file or the command line sets it.
  bool is_users(const std::string& key) const;
  const Value& at(const std::string& key) const;
  // The same; throws ConfigError on null.
  const Value& required(const std::string& key) const;
  const Value& values() const { return values_; }
  Framework framework() const { return framework_; }

  // "run.yaml:31 tensor_model_parallel_size=3": how every message about a key begins.
  std::string where(const std::string& key) const;

  // Replaces a value; its origin becomes "fix-up".
  void fix(const std::string& key, Value value);
  // The same value in another form; its origin stays.
  void respell(const std::string& key, Value value);
  // What the user says in other words: `where`, "run.yaml:31 training.steps=50", is how messages
  // begin then.
  void translate(const std::string& key, Value value, const std::string& where);

  void notice(const std::string& text) { notices_.push_back(Notice{one_line(text)}); }
  void unsupported(const std::string& key, const std::string& text) {
    unsupported_.push_back(Unsupported{key, one_line(text)});
  }
  std::vector<Notice>& notices() { return notices_; }
  std::vector<Unsupported>& unsupported_values() { return unsupported_; }

 private:
  Framework framework_;
  Value values_;                               // a map
  Value defaults_;                             // of keys without effect that are not set
  std::map<std::string, std::string> wheres_;  // of translated keys
  std::vector<Notice> notices_;
  std::vector<Unsupported> unsupported_;
};

// The value where nothing sets the key; nothing for a map.
std::optional<Value> default_of(const KeyInfo& key);

// `value` as the declared type; nothing if it does not fit. Null fits every type.
std::optional<Value> coerce(const Value& value, KeyType type);

}  // namespace sevenfold::config

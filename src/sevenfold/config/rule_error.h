#pragma once

#include <string>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {

// A configuration that breaks a rule. The id ("batch.divisible") is for tests and tools; what() is
// the sentence.
class RuleError : public ConfigError {
 public:
  RuleError(std::string rule, const std::string& sentence)
      : ConfigError(sentence), rule_(std::move(rule)) {}
  const std::string& rule() const { return rule_; }

 private:
  std::string rule_;
};

template <typename... Args>
[[noreturn]] void raise_rule(const char* rule, fmt::format_string<Args...> format, Args&&... args) {
  throw RuleError(rule, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sevenfold

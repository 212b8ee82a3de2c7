#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace sevenfold {

// What one thread needs to match: PCRE2's match data and a stack for compiled patterns.
class MatchWorkspace {
 public:
  MatchWorkspace();
  ~MatchWorkspace();
  MatchWorkspace(const MatchWorkspace&) = delete;
  MatchWorkspace& operator=(const MatchWorkspace&) = delete;

 private:
  friend class SplitPattern;
  struct State;
  std::unique_ptr<State> state_;
};

// A compiled regular expression that cuts text; it never matches an empty text.
class SplitPattern {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    bool found = false;
  };

  // `expression` is in PCRE2's syntax, matched over Unicode characters. Throws ConfigError, naming
  // `where`: malformed, or matches an empty text.
  SplitPattern(const std::string& expression, std::string_view where);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;

  // The first match at or behind `from`. `text` must be UTF-8 and `from` the start of a character.
  Match find(std::string_view text, size_t from, MatchWorkspace& workspace) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace sevenfold

#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace sevenfold {

// Base of every error that Sevenfold throws on purpose. what() is one sentence for the user:
// module, what is wrong with the values in it, the rule, where, and the way out.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user can mend it: command line, experiment file, environment. Exit code 2. Never thrown in a
// step.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// An input file is missing, truncated, corrupt or does not fit the model. Exit code 2 before
// training starts, 1 when met under way.
class DataError : public Error {
 public:
  using Error::Error;
};

// A peer or a link failed; the group is dead afterwards. Exit code 1.
class CommError : public Error {
 public:
  using Error::Error;
};

// Our own mistake: an invariant does not hold. Exit code 1.
class InternalError : public Error {
 public:
  using Error::Error;
};

template <typename E, typename... Args>
[[noreturn]] void raise(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

namespace internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& detail);
}  // namespace internal

}  // namespace sevenfold

// Invariants, on in all builds. SEVENFOLD_CHECK(cond) or SEVENFOLD_CHECK(cond, "format {}", value).
#define SEVENFOLD_CHECK(condition, ...)                                   \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::sevenfold::internal::check_failed(__FILE__, __LINE__, #condition, \
                                          ::fmt::format("" __VA_ARGS__)); \
  } while (false)

// Equality of two printable values; the message shows both.
#define SEVENFOLD_CHECK_EQ(left, right)                                     \
  do {                                                                      \
    const auto& sevenfold_left = (left);                                    \
    const auto& sevenfold_right = (right);                                  \
    if (!(sevenfold_left == sevenfold_right)) [[unlikely]]                  \
      ::sevenfold::internal::check_failed(                                  \
          __FILE__, __LINE__, #left " == " #right,                          \
          ::fmt::format("{} against {}", sevenfold_left, sevenfold_right)); \
  } while (false)

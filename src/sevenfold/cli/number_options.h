#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>

namespace sevenfold::cli {

// Both ends included.
struct WholeRange {
  int64_t smallest = 0;
  int64_t largest = std::numeric_limits<int64_t>::max();
};

// "batch", "data inspect": the words that name a command, without the program's.
std::string command_words(const CLI::App& command);

// `text` as a decimal whole number (no sign but a minus, no blanks, no octal or hexadecimal form).
// Throws ConfigError, which begins with `place` ("batch: --dp").
int64_t read_whole_number(const std::string& place, const std::string& text,
                          const WholeRange& range);
// A decimal number above 0, or at least 0 where `takes_zero`.
double read_positive_number(const std::string& place, const std::string& text,
                            bool takes_zero = false);

// An option for a number of type T (an integer, or a std::optional of one) that outlives the
// parsing. CLI11's own conversions read 010 as octal, take "" as not given and saturate.
template <typename T>
CLI::Option* add_whole_number(CLI::App& command, const std::string& name, T& target,
                              const WholeRange& range, const std::string& help) {
  const auto store = [&command, &target, name, range](const std::string& text) {
    target = static_cast<T>(read_whole_number(command_words(command) + ": " + name, text, range));
  };
  return command.add_option_function<std::string>(name, store, help)->type_name("N");
}

// An option for a number of type T (double, or a std::optional of it) above 0, or at least 0.
template <typename T>
CLI::Option* add_positive_number(CLI::App& command, const std::string& name, T& target,
                                 const std::string& help, bool takes_zero = false) {
  const auto store = [&command, &target, name, takes_zero](const std::string& text) {
    target = read_positive_number(command_words(command) + ": " + name, text, takes_zero);
  };
  return command.add_option_function<std::string>(name, store, help)->type_name("X");
}

}  // namespace sevenfold::cli

#include "sevenfold/cli/next_command.h"

#include <fmt/format.h>

#include <algorithm>

namespace sevenfold::cli {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

bool is_plain(char c) {
  const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_word || std::string_view("_./=:,+-@%").find(c) != std::string_view::npos;
}

std::string with_escapes(const std::string& text) {
  std::string word = "$'";
  for (const char c : text) {
    if (is_control(c))
      word += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      word += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  }
  return word + "'";
}

}  // namespace

std::string shell_word(const std::string& text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  if (std::any_of(text.begin(), text.end(), is_control)) return with_escapes(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string{c};
  return word + "'";
}

std::string experiment_words(const LoadOptions& options) {
  std::string words = shell_word(options.file);
  for (const std::string& word : options.overrides) words += " " + shell_word(word);
  if (!options.presets_directory.empty())
    words += " --presets " + shell_word(options.presets_directory);
  if (options.strict) words += " --strict";
  return words;
}

}  // namespace sevenfold::cli

#include "sevenfold/config/rules/pipeline/layout.h"

#include <cctype>
#include <sstream>

namespace sevenfold::config {
namespace {

constexpr size_t kMaxLength = 200'000;

// "*12" at `at`: the number, with `at` moved behind it; 1 if there is no star.
std::optional<size_t> repetitions(const std::string& text, size_t& at) {
  if (at >= text.size() || text[at] != '*') return 1;
  size_t number = 0;
  const size_t first = ++at;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
    number = number * 10 + static_cast<size_t>(text[at++] - '0');
    if (number > kMaxLength) return std::nullopt;
  }
  return at == first ? std::nullopt : std::optional(number);
}

bool append(std::string& result, const std::string& piece, size_t times) {
  if (result.size() + piece.size() * times > kMaxLength) return false;
  for (size_t i = 0; i < times; ++i) result += piece;
  return true;
}

// Groups "(...)*n" first; what they hold may itself say x*n.
std::optional<std::string> expand_groups(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '(') {
      result += text[at++];
      continue;
    }
    const size_t end = text.find(')', at);
    if (end == std::string::npos) return std::nullopt;
    const std::string group = text.substr(at + 1, end - at - 1);
    at = end + 1;
    const auto times = repetitions(text, at);
    if (!times || group.find('(') != std::string::npos || !append(result, group, *times))
      return std::nullopt;
  }
  return result;
}

std::optional<std::string> expand_letters(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char letter = text[at++];
    if (std::string_view("EtmL|").find(letter) == std::string_view::npos) return std::nullopt;
    const auto times = repetitions(text, at);
    if (!times || !append(result, std::string(1, letter), *times)) return std::nullopt;
  }
  return result;
}

std::optional<std::vector<std::string>> from_text(const std::string& text) {
  std::string letters;
  for (const char c : text)
    if (c != ',' && std::isspace(static_cast<unsigned char>(c)) == 0) letters += c;
  const auto groups = expand_groups(letters);
  const auto expanded = groups ? expand_letters(*groups) : std::nullopt;
  if (!expanded || expanded->empty()) return std::nullopt;
  std::vector<std::string> stages(1);
  for (const char letter : *expanded) {
    if (letter == '|')
      stages.emplace_back();
    else
      stages.back() += letter;
  }
  return stages;
}

std::optional<char> letter_of(const std::string& name) {
  if (name == "embedding") return 'E';
  if (name == "decoder") return 't';
  if (name == "mtp") return 'm';
  return name == "loss" ? std::optional('L') : std::nullopt;
}

std::optional<std::vector<std::string>> from_lists(const Value& value) {
  std::vector<std::string> stages;
  for (const Value& stage : value.list) {
    if (!stage.is_list()) return std::nullopt;
    std::string letters;
    for (const Value& item : stage.list) {
      const auto letter = letter_of(item.text);
      if (!letter) return std::nullopt;
      letters += *letter;
    }
    stages.push_back(letters);
  }
  return stages.empty() ? std::nullopt : std::optional(stages);
}

}  // namespace

std::optional<std::vector<std::string>> read_pipeline_layout(const Value& value) {
  if (value.is_list()) return from_lists(value);
  return value.is_string() ? from_text(value.text) : std::nullopt;
}

}  // namespace sevenfold::config

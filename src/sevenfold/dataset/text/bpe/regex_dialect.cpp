#include "sevenfold/dataset/text/bpe/regex_dialect.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// Unicode's property White_Space as members of a class. PCRE2's own \s has U+180E besides.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

constexpr std::array<std::string_view, 42> kProperties = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",   "Mn",       "Mc",       "Me",
    "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd",  "Ps",       "Pe",       "Pi",
    "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So",  "Z",        "Zs",       "Zl",
    "Zp", "C",  "Cc", "Cf", "Co", "Cs", "Han", "Hiragana", "Katakana", "Hangul"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) translate_item();
    return std::move(output_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    raise<ConfigError>(
        "{}: {} at byte {} of the pattern \"{}\" is not supported; tokenize with the library that "
        "made the file and name the resulting PREFIX",
        where_, what, at_, pattern_);
  }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void copy(size_t count) {
    output_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void translate_item() {
    const char c = peek();
    switch (c) {
      case '\\':
        return translate_escape(false);
      case '[':
        return translate_class();
      case '(':
        return translate_group();
      case '?':
      case '*':
      case '+':
        return translate_repeat();
      case '{':
        return translate_counted_repeat();
      case '.':
        output_ += "[^\\n]";
        ++at_;
        return;
      case '^':
      case '$':
        refuse("an anchor");
      case ']':
      case '}':
        refuse("a lone bracket");
      default:
        return copy(1);
    }
  }

  void translate_group() {
    if (starts_with("(?i:")) return translate_folded_group();
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"})
      if (starts_with(opening)) return copy(opening.size());
    if (peek(1) == '?' || peek(1) == '*') refuse("this kind of group");
    copy(1);
  }

  // The two engines agree on the case of ASCII letters, but not on pairs of letters that are the
  // folded form of one character, such as ss.
  void translate_folded_group() {
    const size_t close = pattern_.find(')', at_);
    if (close == std::string_view::npos) refuse("an open group");
    const std::string_view inside = pattern_.substr(at_ + 4, close - at_ - 4);
    const bool is_plain = std::all_of(inside.begin(), inside.end(),
                                      [](char c) { return is_letter(c) || c == '\'' || c == '|'; });
    std::string lower(inside);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return is_letter(c) ? static_cast<char>(c | 0x20) : c; });
    for (const char* pair : {"ss", "ff", "fi", "fl", "st"})
      if (!is_plain || lower.find(pair) != std::string::npos)
        refuse("(?i:...) around anything but a few ASCII letters");
    copy(close + 1 - at_);
  }

  void translate_repeat() {
    copy(1);
    if (peek() == '?' || peek() == '+') copy(1);
    if (peek() != '\0' && std::strchr("?*+{", peek()) != nullptr) refuse("a repeat of a repeat");
  }

  void translate_counted_repeat() {
    size_t end = 1;
    while (is_digit(peek(end))) ++end;
    const bool has_minimum = end > 1;
    if (peek(end) == ',') ++end;
    while (is_digit(peek(end))) ++end;
    if (!has_minimum || peek(end) != '}') refuse("a brace that is no {n}, {n,} or {n,m}");
    copy(end + 1);
    // Oniguruma reads {n,m}+ as a repeat of the repeat, PCRE2 as a possessive one.
    if (peek() != '\0' && std::strchr("?*+{", peek()) != nullptr) refuse("a repeat of a repeat");
  }

  void translate_class() {
    copy(1);
    if (peek() == '^') copy(1);
    if (peek() == ']') refuse("an empty class");
    while (peek() != ']') {
      if (at_ >= pattern_.size()) refuse("an open class");
      if (peek() == '[') refuse("a class within a class");
      if (starts_with("&&")) refuse("an intersection of classes");
      if (peek() == '\\') {
        translate_escape(true);
      } else {
        copy(1);
      }
    }
    copy(1);
  }

  void translate_escape(bool in_class) {
    const char c = peek(1);
    switch (c) {
      case 's':
        output_ += in_class ? std::string(kWhiteSpace) : fmt::format("[{}]", kWhiteSpace);
        break;
      case 'S':
        if (in_class) refuse("\\S in a class");
        output_ += fmt::format("[^{}]", kWhiteSpace);
        break;
      case 'd':
        output_ += "\\p{Nd}";
        break;
      case 'D':
        output_ += "\\P{Nd}";
        break;
      case 'v':
        output_ += "\\x0b";
        break;
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return copy(2);
      case 'p':
      case 'P':
        return translate_property();
      case 'x':
      case 'u':
        return translate_code_point();
      default:
        if (is_letter(c) || is_digit(c) || c <= ' ' || c > '~') refuse("this escape");
        return copy(2);
    }
    at_ += 2;
  }

  void translate_property() {
    const size_t close = pattern_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse("a property without braces");
    const std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    if (name.empty() ||
        std::find(kProperties.begin(), kProperties.end(), name) == kProperties.end())
      refuse(fmt::format("the property \"{}\"", name));
    copy(close + 1 - at_);
  }

  // \xHH, \x{H...} or \uHHHH.
  void translate_code_point() {
    size_t from = 2;
    size_t count = peek(1) == 'u' ? 4 : 2;
    size_t length = from + count;
    if (peek(1) == 'x' && peek(2) == '{') {
      from = 3;
      count = pattern_.substr(at_).find('}');
      if (count == std::string_view::npos || count == from) refuse("this escape");
      length = count + 1;
      count -= from;
    }
    const std::string_view digits = pattern_.substr(std::min(at_ + from, pattern_.size()), count);
    if (digits.size() != count ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      refuse("this escape");
    // Oniguruma reads \x80 to \xff as bytes, not as characters.
    if (length == 4 && digits[0] >= '8') refuse("a byte escape");
    output_ += fmt::format("\\x{{{}}}", digits);
    at_ += length;
  }

  std::string_view pattern_;
  std::string_view where_;
  size_t at_ = 0;
  std::string output_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).run();
}

}  // namespace sevenfold

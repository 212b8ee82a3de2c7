#include "sevenfold/config/yaml/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace sevenfold::config {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_digit_or_underscore(char c) {
  return is_digit(c) || c == '_';
}

// Walks over a scalar; each `skip_` moves over what it finds and says how much that was.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ == text_.size(); }
  bool peek(char c) const { return !at_end() && text_[at_] == c; }
  bool skip(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  bool skip_sign() { return skip('-') || skip('+'); }
  template <typename Predicate>
  size_t skip_while(Predicate predicate) {
    const size_t start = at_;
    while (!at_end() && predicate(text_[at_])) ++at_;
    return at_ - start;
  }
  // [0-9][0-9_]*
  bool skip_digits() {
    if (at_end() || !is_digit(text_[at_])) return false;
    skip_while(is_digit_or_underscore);
    return true;
  }
  // (:[0-5]?[0-9])+ ; true if there is at least one part.
  bool skip_sexagesimal_parts() {
    bool any = false;
    while (peek(':')) {
      const size_t before = at_++;
      const size_t digits = skip_while(is_digit);
      if (digits == 0 || digits > 2 || (digits == 2 && text_[at_ - 2] > '5')) {
        at_ = before;
        return any;
      }
      any = true;
    }
    return any;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

std::string without_underscores(std::string_view text) {
  std::string result(text);
  result.erase(std::remove(result.begin(), result.end(), '_'), result.end());
  return result;
}

// `digits` in `base`, with sign; a float when it does not fit in 64 bits, nothing when there is no
// digit.
std::optional<Value> integer_value(bool negative, std::string digits, int base) {
  if (digits.empty()) return std::nullopt;
  if (negative) digits.insert(0, "-");
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (end != digits.data() + digits.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return Value::of(std::strtod(digits.c_str(), nullptr));
  return Value::of(value);
}

// 1:30 = 1 * 60 + 30; the last part may have a fraction.
double sexagesimal(const std::string& digits) {
  double value = 0.0;
  size_t start = 0;
  while (start <= digits.size()) {
    const size_t colon = std::min(digits.find(':', start), digits.size());
    value = value * 60.0 + std::strtod(digits.substr(start, colon - start).c_str(), nullptr);
    start = colon + 1;
  }
  return value;
}

std::optional<Value> resolve_integer(const std::string& text) {
  Cursor cursor(text);
  const bool negative = cursor.peek('-');
  const size_t sign = cursor.skip_sign() ? 1 : 0;
  const std::string body = text.substr(sign);
  if (body.empty()) return std::nullopt;
  const auto all = [&](size_t from, std::string_view allowed) {
    return body.size() > from && body.find_first_not_of(allowed, from) == std::string::npos;
  };
  if (body.starts_with("0b") && all(2, "01_"))
    return integer_value(negative, without_underscores(body.substr(2)), 2);
  if (body.starts_with("0x") && all(2, "0123456789abcdefABCDEF_"))
    return integer_value(negative, without_underscores(body.substr(2)), 16);
  if (body[0] == '0' && all(1, "01234567_")) {
    const std::string octal = without_underscores(body.substr(1));
    return integer_value(negative, octal.empty() ? "0" : octal, 8);
  }
  if (body == "0") return integer_value(false, "0", 10);
  if (body[0] == '0' || !cursor.skip_digits()) return std::nullopt;
  if (cursor.at_end()) return integer_value(negative, without_underscores(body), 10);
  if (cursor.skip_sexagesimal_parts() && cursor.at_end()) {
    const double value = sexagesimal(without_underscores(body));
    if (std::fabs(value) >= 0x1p63) return Value::of(negative ? -value : value);
    return Value::of(static_cast<int64_t>(negative ? -value : value));
  }
  return std::nullopt;
}

// After the fraction: nothing, or e with a signed exponent.
bool ends_with_signed_exponent(Cursor& cursor) {
  if (cursor.at_end()) return true;
  if (!cursor.skip('e') && !cursor.skip('E')) return false;
  return cursor.skip_sign() && cursor.skip_while(is_digit) > 0 && cursor.at_end();
}

std::optional<Value> resolve_special_float(const std::string& text) {
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  const std::string body = text.substr(has_sign ? 1 : 0);
  if (body == ".inf" || body == ".Inf" || body == ".INF") {
    const double infinity = std::numeric_limits<double>::infinity();
    return Value::of(text[0] == '-' ? -infinity : infinity);
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN")
    return Value::of(std::numeric_limits<double>::quiet_NaN());
  return std::nullopt;
}

std::optional<Value> resolve_float(const std::string& text) {
  if (auto special = resolve_special_float(text)) return special;
  Cursor cursor(text);
  const bool has_sign = cursor.skip_sign();
  const bool has_whole = cursor.skip_digits();
  if (has_whole && cursor.skip_sexagesimal_parts()) {
    if (!cursor.skip('.')) return std::nullopt;
    cursor.skip_while(is_digit_or_underscore);
    if (!cursor.at_end()) return std::nullopt;
    const double value = sexagesimal(without_underscores(text.substr(has_sign ? 1 : 0)));
    return Value::of(text[0] == '-' ? -value : value);
  }
  if (!cursor.skip('.')) return std::nullopt;
  if (has_whole)
    cursor.skip_while(is_digit_or_underscore);
  else if (has_sign || !cursor.skip_digits())
    return std::nullopt;
  if (!ends_with_signed_exponent(cursor)) return std::nullopt;
  return Value::of(std::strtod(without_underscores(text).c_str(), nullptr));
}

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

Value resolve_plain_scalar(const std::string& text) {
  Value value;
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) {
    value = Value::null();
  } else if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) {
    value = Value::of(true);
  } else if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) {
    value = Value::of(false);
  } else if (std::string_view("-+.0123456789").find(text[0]) == std::string_view::npos) {
    value = Value::of(text);
  } else if (auto number = resolve_float(text)) {
    value = *number;
  } else if (auto integer = resolve_integer(text)) {
    value = *integer;
  } else {
    value = Value::of(text);
  }
  value.text = text;
  return value;
}

Value retype_substituted(const std::string& text) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower == "true" || lower == "false") return Value::of(lower == "true");
  Cursor cursor(text);
  const bool negative = cursor.skip('-');
  const size_t whole = cursor.skip_while(is_digit);
  if (whole > 0 && cursor.at_end())
    return *integer_value(negative, text.substr(negative ? 1 : 0), 10);
  const size_t fraction = cursor.skip('.') ? cursor.skip_while(is_digit) : 0;
  if (whole + fraction == 0) return Value::of(text);
  if (cursor.skip('e') || cursor.skip('E')) {
    cursor.skip_sign();
    if (cursor.skip_while(is_digit) == 0) return Value::of(text);
  }
  return cursor.at_end() ? Value::of(std::strtod(text.c_str(), nullptr)) : Value::of(text);
}

Value interpolate(const Value& value, const Environment& environment,
                  const std::function<void(const Value&, const std::string& name)>& unset) {
  const std::string& text = value.text;
  std::string result;
  size_t at = 0;
  while (at < text.size()) {
    if (text.compare(at, 2, "${") != 0) {
      result += text[at++];
      continue;
    }
    // NAME is one or more characters other than : { }; the default ends at the first }.
    const size_t name_end = std::min(text.find_first_of(":{}", at + 2), text.size());
    const bool has_default = name_end < text.size() && text[name_end] == ':';
    const size_t end = has_default ? text.find('}', name_end) : name_end;
    const bool matches = name_end > at + 2 && end < text.size() && text[end] == '}';
    if (!matches) {
      result += text[at++];
      continue;
    }
    const std::string name = text.substr(at + 2, name_end - at - 2);
    if (const auto found = environment(name))
      result += *found;
    else if (has_default)
      result += text.substr(name_end + 1, end - name_end - 1);
    else
      unset(value, name);
    at = end + 1;
  }
  if (result == text) return value;
  Value retyped = retype_substituted(result);
  retyped.text = result;
  retyped.origin = value.origin;
  return retyped;
}

}  // namespace sevenfold::config

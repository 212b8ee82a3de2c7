#include "sevenfold/dataset/text/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

struct Sequence {
  size_t num_bytes = 1;  // of the character, or of the broken part of one
  bool is_valid = false;
};

// Table 3-7 of the Unicode standard: what the second byte may be depends on the first.
Sequence read_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  if (first < 0xc2 || first > 0xf4) return {1, false};
  const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  unsigned low = 0x80;
  unsigned high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, true};
}

size_t skip_ascii(std::string_view text, size_t from) {
  for (; from + 8 <= text.size(); from += 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + from, 8);
    if ((bytes & 0x8080808080808080ULL) != 0) break;
  }
  return from;
}

utf8proc_option_t options_of(NormalForm form) {
  const int stable = UTF8PROC_STABLE;
  switch (form) {
    case NormalForm::kNfc:
      return static_cast<utf8proc_option_t>(stable | UTF8PROC_COMPOSE);
    case NormalForm::kNfd:
      return static_cast<utf8proc_option_t>(stable | UTF8PROC_DECOMPOSE);
    case NormalForm::kNfkc:
      return static_cast<utf8proc_option_t>(stable | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case NormalForm::kNfkd:
      return static_cast<utf8proc_option_t>(stable | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
  return UTF8PROC_STABLE;
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = skip_ascii(text, 0);
  while (at < text.size()) {
    const Sequence sequence = read_sequence(text.substr(at));
    if (!sequence.is_valid) return at;
    at += sequence.num_bytes;
    if (sequence.num_bytes == 1) at = skip_ascii(text, at);
  }
  return std::nullopt;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string replaced;
  replaced.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Sequence sequence = read_sequence(text.substr(at));
    if (sequence.is_valid) {
      replaced += text.substr(at, sequence.num_bytes);
    } else {
      replaced += "\xef\xbf\xbd";
    }
    at += sequence.num_bytes;
  }
  return replaced;
}

std::string normalize(std::string_view text, NormalForm form) {
  // Nothing below U+0300, whose first byte is 0xcc, changes in form C; nothing in ASCII in any.
  const unsigned char first_to_change = form == NormalForm::kNfc ? 0xcc : 0x80;
  if (std::all_of(text.begin(), text.end(),
                  [&](char c) { return static_cast<unsigned char>(c) < first_to_change; }))
    return std::string(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  SEVENFOLD_CHECK(size >= 0, "utf8proc: {}", utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(size)};
}

}  // namespace sevenfold

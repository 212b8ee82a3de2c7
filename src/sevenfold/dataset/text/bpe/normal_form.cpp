#include "sevenfold/dataset/text/bpe/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

struct Range {
  int32_t first;
  int32_t last;
};

// What came after Unicode 9 (up to 14) and is moved, composed or decomposed by normalization.
constexpr std::array kYounger = std::to_array<Range>(
    {{0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},
     {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},
     {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},   {0x32ff, 0x32ff},   {0xa7f2, 0xa7f4},
     {0xa82c, 0xa82c},   {0xab69, 0xab69},   {0x10781, 0x10785}, {0x10787, 0x107b0},
     {0x107b2, 0x107ba}, {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10f46, 0x10f50},
     {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e},
     {0x11839, 0x1183a}, {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938},
     {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34},
     {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45},
     {0x11d97, 0x11d97}, {0x16ff0, 0x16ff1}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae},
     {0x1e2ec, 0x1e2ef}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}});

bool is_younger(int32_t character) {
  const auto range =
      std::lower_bound(kYounger.begin(), kYounger.end(), character,
                       [](const Range& known, int32_t value) { return known.last < value; });
  return range != kYounger.end() && range->first <= character;
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

// Appends a text without younger characters.
void append_normalized(std::string& normalized, std::string_view text, NormalForm form) {
  if (text.empty()) return;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  SEVENFOLD_CHECK(size >= 0, "utf8proc: {}", utf8proc_errmsg(size));
  normalized.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

}  // namespace

std::string normalize(std::string_view text, NormalForm form) {
  // Nothing below U+0300, whose first byte is 0xcc, changes in form C; nothing in ASCII in any.
  const unsigned char first_to_change = form == NormalForm::kNfc ? 0xcc : 0x80;
  if (std::all_of(text.begin(), text.end(),
                  [&](char c) { return static_cast<unsigned char>(c) < first_to_change; }))
    return std::string(text);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  std::string normalized;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character);
    SEVENFOLD_CHECK(length > 0, "the text is not UTF-8 at byte {}", at);
    const size_t end = at + static_cast<size_t>(length);
    if (is_younger(character)) {
      append_normalized(normalized, text.substr(done, at - done), form);
      normalized += text.substr(at, end - at);
      done = end;
    }
    at = end;
  }
  append_normalized(normalized, text.substr(done), form);
  return normalized;
}

}  // namespace sevenfold

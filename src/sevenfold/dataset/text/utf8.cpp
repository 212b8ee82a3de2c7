#include "sevenfold/dataset/text/utf8.h"

#include <cstdint>
#include <cstring>

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

}  // namespace sevenfold

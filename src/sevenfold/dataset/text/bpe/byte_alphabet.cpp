#include "sevenfold/dataset/text/bpe/byte_alphabet.h"

#include <array>
#include <cstdint>

namespace sevenfold {
namespace {

constexpr int kNumCharacters = 256 + 68;

constexpr bool shows_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

// Byte of a character; -1: the character stands for none.
constexpr std::array<int16_t, kNumCharacters> byte_of_character() {
  std::array<int16_t, kNumCharacters> bytes{};
  bytes.fill(-1);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = shows_itself(byte) ? byte : next++;
    bytes[static_cast<size_t>(character)] = static_cast<int16_t>(byte);
  }
  return bytes;
}

constexpr auto kByteOfCharacter = byte_of_character();

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size(); ++i) {
    unsigned character = static_cast<unsigned char>(token[i]);
    // All characters of the alphabet take one or two bytes of UTF-8.
    if (character >= 0x80) {
      if (character < 0xc2 || character > 0xdf || i + 1 == token.size()) return std::nullopt;
      character = (character & 0x1fU) << 6U | (static_cast<unsigned char>(token[++i]) & 0x3fU);
    }
    if (character >= kNumCharacters || kByteOfCharacter[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOfCharacter[character]);
  }
  return bytes;
}

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sevenfold {

// The tokenizer that needs no file: every byte is a token, 256 ends a document.
struct ByteTokenizer {
  static constexpr int64_t kEodTokenId = 256;
  static constexpr int64_t kVocabSize = 257;
};

// Tokens as text for a terminal: printable ASCII as it is, other bytes as \n, \t, \x1b, ..., end of
// document as <eod>, anything else as <id>.
std::string escape_tokens(std::span<const int64_t> tokens);

}  // namespace sevenfold

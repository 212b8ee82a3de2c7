#pragma once

#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold {

// The tokenizer that needs no file: every byte is a token, 256 ends a document.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr int64_t kEodTokenId = 256;
  static constexpr int64_t kVocabSize = 257;

  void encode(std::string_view text, std::vector<int64_t>& ids) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocab_size() const override { return kVocabSize; }
  std::optional<int64_t> eod_token_id() const override { return kEodTokenId; }
  const std::string& name() const override { return name_; }
  bool is_splittable() const override { return true; }

 private:
  std::string name_ = "byte";
};

// Tokens as text for a terminal: printable ASCII as it is, other bytes as \n, \t, \x1b, ..., end of
// document as <eod>, anything else as <id>.
std::string escape_tokens(std::span<const int64_t> tokens);
// Text for one line of a terminal: line breaks, other control bytes and backslashes as above, what
// is not UTF-8 as U+FFFD.
std::string escape_text(std::string_view text);

}  // namespace sevenfold

#include "sevenfold/dataset/sequence_source.h"

#include "sevenfold/core/error.h"

namespace sevenfold {

void check_token_ids(const SequenceSource& data, int64_t sequence, int64_t offset,
                     std::span<const int64_t> tokens, int64_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_size) [[likely]]
      continue;
    raise<DataError>(
        "dataset: {}: document {} holds token id {} at position {}, outside the "
        "vocabulary of {} (0..{}); {}",
        data.tokens_name(), sequence, tokens[i], offset + static_cast<int64_t>(i), vocab_size,
        vocab_size - 1,
        tokens[i] < 0 ? std::string("the file is corrupt or of another type")
                      : fmt::format("set vocab_size to the tokenizer's, at least {}, or "
                                    "tokenize the text again",
                                    tokens[i] + 1));
  }
}

void check_token_ids(const SequenceSource& data, SequenceRange range, int64_t vocab_size) {
  for_each_piece(data, range,
                 [&](int64_t sequence, int64_t offset, std::span<const int64_t> tokens) {
                   check_token_ids(data, sequence, offset, tokens, vocab_size);
                 });
}

}  // namespace sevenfold

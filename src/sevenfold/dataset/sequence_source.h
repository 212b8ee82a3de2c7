#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sevenfold {

// Half-open range of sequence numbers.
struct SequenceRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const SequenceRange&, const SequenceRange&) = default;
};

// Tokens in numbered sequences: those of a file, or made up. Immutable: any thread may read.
class SequenceSource {
 public:
  virtual ~SequenceSource() = default;

  virtual const std::string& name() const = 0;  // heads messages: a prefix, ...
  virtual std::string tokens_name() const = 0;  // of what holds the tokens: PREFIX.bin, ...
  virtual int64_t bytes_per_token() const = 0;  // as stored
  virtual int64_t num_sequences() const = 0;
  virtual int64_t sequence_length(int64_t sequence) const = 0;
  // Copies tokens [offset, offset + tokens.size()) of a sequence, widened. The range must lie
  // inside it.
  virtual void read(int64_t sequence, int64_t offset, std::span<int64_t> tokens) const = 0;

  // Says which lengths these are, for caches of what follows from them: equal for equal lengths
  // only. Empty: not to be cached.
  virtual std::string identity() const = 0;

  SequenceRange all_sequences() const { return {0, num_sequences()}; }
};

// Throws DataError (file, document, position, token id, vocabulary, way out) for the first token of
// `range` that is not in [0, vocab_size). Reads every token.
void check_token_ids(const SequenceSource& data, SequenceRange range, int64_t vocab_size);

// The same for tokens already read from `sequence`, the first of them at `offset`.
void check_token_ids(const SequenceSource& data, int64_t sequence, int64_t offset,
                     std::span<const int64_t> tokens, int64_t vocab_size);

// Calls visit(sequence, offset, tokens) for pieces of at most 64 Ki tokens, in order. The tokens
// are valid during the call only.
template <typename Visit>
void for_each_piece(const SequenceSource& data, SequenceRange range, Visit&& visit) {
  constexpr int64_t kPieceTokens = 65536;
  std::vector<int64_t> tokens;
  for (int64_t sequence = range.begin; sequence < range.end; ++sequence) {
    const int64_t length = data.sequence_length(sequence);
    for (int64_t offset = 0; offset < length; offset += kPieceTokens) {
      tokens.resize(static_cast<size_t>(std::min(kPieceTokens, length - offset)));
      data.read(sequence, offset, tokens);
      visit(sequence, offset, std::span<const int64_t>(tokens));
    }
  }
}

}  // namespace sevenfold

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sevenfold/dataset/indexed/mapped_file.h"

namespace sevenfold {

// Element types of .bin under their codes in .idx. Codes 6 and 7 (floats) hold no tokens and are
// refused.
enum class ElementType : uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kU16 = 8 };
std::string_view element_type_name(ElementType type);  // "u16", ...
int64_t element_bytes(ElementType type);

// Half-open range of sequence numbers.
struct SequenceRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const SequenceRange&, const SequenceRange&) = default;
};

// Reader of Megatron's PREFIX.bin and PREFIX.idx (layout: docs/data.md). Both files are
// memory-mapped, so opening costs one pass over the index and no copy. Immutable: any thread may
// read.
//
// The opened index is consistent: every length is at least 0, every position is the running sum of
// the lengths before it, the last one ends where .bin ends, and the document table rises from 0 to
// the number of sequences. GPT data is ordered by sequences; the document table is only reported.
class IndexedDataset {
 public:
  // Throws DataError that says which file and field is wrong.
  explicit IndexedDataset(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  ElementType element_type() const { return type_; }
  int64_t num_sequences() const { return num_sequences_; }
  int64_t num_documents() const { return num_documents_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t bin_bytes() const { return static_cast<int64_t>(bin_.bytes().size()); }
  int64_t idx_bytes() const { return static_cast<int64_t>(idx_.bytes().size()); }
  SequenceRange all_sequences() const { return {0, num_sequences_}; }

  int64_t sequence_length(int64_t sequence) const;
  // Copies tokens [offset, offset + tokens.size()) of a sequence, widened. The range must lie
  // inside it.
  void read(int64_t sequence, int64_t offset, std::span<int64_t> tokens) const;

 private:
  std::string idx_path() const { return prefix_ + ".idx"; }
  int64_t field_i64(int64_t byte) const;
  int64_t sequence_position(int64_t sequence) const;  // byte in .bin
  void read_header();
  void check_sequences();
  void check_documents() const;

  std::string prefix_;
  MappedFile idx_;
  MappedFile bin_;
  ElementType type_ = ElementType::kU16;
  int64_t num_sequences_ = 0;
  int64_t num_documents_ = 0;
  int64_t num_tokens_ = 0;
};

// Throws DataError (file, document, position, token id, vocabulary, way out) for the first token of
// `range` that is not in [0, vocab_size). Reads every token.
void check_token_ids(const IndexedDataset& data, SequenceRange range, int64_t vocab_size);

// The same for tokens already read from `sequence`, the first of them at `offset`.
void check_token_ids(const IndexedDataset& data, int64_t sequence, int64_t offset,
                     std::span<const int64_t> tokens, int64_t vocab_size);

// Calls visit(sequence, offset, tokens) for pieces of at most 64 Ki tokens, in order. The tokens
// are valid during the call only.
template <typename Visit>
void for_each_piece(const IndexedDataset& data, SequenceRange range, Visit&& visit) {
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

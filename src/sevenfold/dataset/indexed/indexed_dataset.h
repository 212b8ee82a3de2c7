#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sevenfold/dataset/indexed/mapped_file.h"
#include "sevenfold/dataset/sequence_source.h"

namespace sevenfold {

// Element types of .bin under their codes in .idx. Codes 6 and 7 (floats) hold no tokens and are
// refused.
enum class ElementType : uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kU16 = 8 };
std::string_view element_type_name(ElementType type);  // "u16", ...
int64_t element_bytes(ElementType type);

// Reader of Megatron's PREFIX.bin and PREFIX.idx (layout: docs/data.md). Both files are
// memory-mapped, so opening costs one pass over the index and no copy. Immutable: any thread may
// read.
//
// The opened index is consistent: every length is at least 0, every position is the running sum of
// the lengths before it, the last one ends where .bin ends, and the document table rises from 0 to
// the number of sequences. GPT data is ordered by sequences; the document table is only reported.
class IndexedDataset final : public SequenceSource {
 public:
  // Throws DataError that says which file and field is wrong.
  explicit IndexedDataset(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  const std::string& name() const override { return prefix_; }
  std::string tokens_name() const override { return prefix_ + ".bin"; }
  int64_t bytes_per_token() const override { return element_bytes(type_); }
  // Hash of all of .idx: reads it once.
  std::string identity() const override;
  ElementType element_type() const { return type_; }
  int64_t num_sequences() const override { return num_sequences_; }
  int64_t num_documents() const { return num_documents_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t bin_bytes() const { return static_cast<int64_t>(bin_.bytes().size()); }
  int64_t idx_bytes() const { return static_cast<int64_t>(idx_.bytes().size()); }

  int64_t sequence_length(int64_t sequence) const override;
  void read(int64_t sequence, int64_t offset, std::span<int64_t> tokens) const override;

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

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sevenfold/dataset/indexed/indexed_dataset.h"

namespace sevenfold {

// The type that Megatron's tokenizing tool chooses: u16 below 65500 ids, else i32.
ElementType element_type_for(int64_t vocab_size);

// Writes PREFIX.bin and PREFIX.idx, one document per sequence, streaming: only the lengths are
// kept. Everything goes to temporary names beside the target; finish() makes both files durable,
// takes an older .bin away and moves the two in place. An error before that leaves nothing behind
// and older files untouched; an error in the moves, or a kill between them, leaves no .bin, so the
// data set counts as missing and is made again.
class IndexedWriter {
 public:
  // Throws ConfigError when the files cannot be made there. Makes missing directories.
  IndexedWriter(const std::string& prefix, ElementType type);
  ~IndexedWriter();
  IndexedWriter(const IndexedWriter&) = delete;
  IndexedWriter& operator=(const IndexedWriter&) = delete;

  // Tokens of the open document. Throws DataError when the disk is full.
  void append(std::span<const int64_t> tokens);
  // Throws DataError when the document has more tokens than the format's 32-bit length can say.
  void end_document();
  void finish();

  int64_t num_documents() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t num_tokens() const { return num_tokens_; }

 private:
  class OutputFile;

  void write_index();

  std::string prefix_;
  ElementType type_;
  std::vector<int32_t> lengths_;
  std::vector<char> encoded_;
  int64_t open_tokens_ = 0;
  int64_t num_tokens_ = 0;
  std::unique_ptr<OutputFile> bin_;
  std::unique_ptr<OutputFile> idx_;
};

}  // namespace sevenfold

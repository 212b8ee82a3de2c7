#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sevenfold/dataset/sequence_source.h"

namespace sevenfold {

// Megatron's order of training samples (GPTDataset), reproduced exactly; rules: docs/data.md.
// S = sequence length, a = 1 token more per sample for the last label (0 without extra_token),
// T = tokens of one epoch, E = epochs, n = number of samples.

// Where a sample starts: place in the document index, and token in that document.
struct SampleStart {
  int64_t position = 0;
  int64_t offset = 0;
  friend bool operator==(const SampleStart&, const SampleStart&) = default;
};

// The most documents or samples of one index.
inline constexpr int64_t kMaxIndexEntries = int64_t{1} << 33;

struct SampleIndexOptions {
  int64_t seq_length = 0;
  std::optional<int64_t> num_samples;  // asked; none: one epoch
  uint64_t seed = 1234;
  bool shuffle = true;      // false: documents and samples in file order
  bool drop_last = true;    // drop the last partial sample
  bool extra_token = true;  // a
};

// What an index will hold.
struct SampleCounts {
  int64_t num_epochs = 1;
  int64_t tokens_per_epoch = 0;
  bool separate_final_epoch = false;  // the last epoch is shuffled by itself
  int64_t num_documents = 0;          // E times the range
  int64_t num_samples = 0;
  friend bool operator==(const SampleCounts&, const SampleCounts&) = default;
};

struct SampleIndex {
  int64_t num_epochs = 1;
  int64_t tokens_per_epoch = 0;
  bool separate_final_epoch = false;
  std::span<const int64_t> document_index;  // sequence ids in order of use; E times the range
  std::span<const SampleStart> starts;      // n + 1; sample k lies between entries k and k + 1
  std::span<const int64_t> shuffle_index;   // n: the k-th sample to be used; empty: the identity
  std::shared_ptr<const void> storage;      // holds the three: memory, or a mapped file

  int64_t num_samples() const { return static_cast<int64_t>(starts.size()) - 1; }
  // Place in `starts` of the k-th sample to be used.
  int64_t place(int64_t sample) const {
    return shuffle_index.empty() ? sample : shuffle_index[static_cast<size_t>(sample)];
  }
};

using SequenceLength = std::function<int64_t(int64_t sequence)>;

// Throws DataError for a range without tokens, or with fewer than one sample takes in all its
// epochs. `name` heads the messages.
SampleCounts count_samples(const std::string& name, const SequenceLength& length,
                           SequenceRange range, const SampleIndexOptions& options);

// Index over the sequences of `range`. `name` heads the messages. More samples are asked than one
// epoch holds: epochs are added until they are there, so n >= the number asked. Throws what
// count_samples throws. Memory: 8 bytes per document and epoch, 24 per sample.
SampleIndex build_sample_index(const std::string& name, const SequenceLength& length,
                               SequenceRange range, const SampleIndexOptions& options);

// The n + 1 starts alone, for documents in the order of `document_index`.
std::vector<SampleStart> build_sample_starts(const SequenceLength& length,
                                             const std::vector<int64_t>& document_index,
                                             int64_t num_samples,
                                             const SampleIndexOptions& options);

}  // namespace sevenfold

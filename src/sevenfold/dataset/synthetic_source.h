#pragma once

#include <cstdint>

#include "sevenfold/dataset/sample_source.h"

namespace sevenfold {

struct SyntheticOptions {
  int64_t vocab_size = 0;  // at least 2: ids 1..vocab_size-1 are text, 0 ends documents
  int64_t seq_length = 0;
  int64_t num_samples = 64;
  uint64_t seed = 0;
};

// Samples without a file, for verification at shrunk sizes: a token stream that is a function of
// the position alone (a counter-based hash), cut as an unshuffled data set is. Each sample starts
// with text, in documents of unequal lengths, and ends in a run of end-of-document tokens of its
// own length. So with eod_mask_loss the trained tokens of a sample range from 0 to S, and a sum
// over ranks that weighs samples alike instead of tokens comes out wrong.
class SyntheticSource final : public SampleSource {
 public:
  static constexpr int64_t kEodTokenId = 0;

  explicit SyntheticSource(const SyntheticOptions& options);

  int64_t seq_length() const override { return options_.seq_length; }
  int64_t num_samples() const override { return options_.num_samples; }
  void read(int64_t index, std::span<int64_t> tokens) const override;

 private:
  int64_t token_at(int64_t position) const;

  SyntheticOptions options_;
};

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sevenfold/dataset/order/index_cache.h"
#include "sevenfold/dataset/sample_source.h"
#include "sevenfold/dataset/sequence_source.h"

namespace sevenfold {

struct GptDatasetOptions {
  SequenceRange sequences;  // the part of the data to use
  int64_t seq_length = 0;
  int64_t vocab_size = 0;  // ids that the model knows; read() checks every token
  // Asked; decides how many epochs are there, and shuffled together. None: one.
  std::optional<int64_t> num_samples;
  uint64_t seed = 1234;
  // true: Megatron's document and sample shuffle over as many epochs as num_samples needs.
  // false: sample k is tokens [k*S, k*S + S] of the documents in order.
  bool shuffle = true;
  // What Megatron's command line leaves as it is: false keeps the last partial sample, filled with
  // kPaddingTokenId; and gives samples of S tokens, whose last label is kPaddingTokenId.
  bool drop_last = true;
  bool extra_token = true;
  IndexCache cache;  // where the index is kept between runs
};

// Training samples of a file, or of made-up documents. Immutable after construction: any thread may
// read.
class GptDataset final : public SampleSource {
 public:
  // Throws DataError when the part holds too few tokens for one sample.
  GptDataset(std::shared_ptr<const SequenceSource> data, const GptDatasetOptions& options);

  int64_t seq_length() const override { return options_.seq_length; }
  int64_t num_samples() const override { return index_.num_samples(); }
  void read(int64_t index, std::span<int64_t> tokens) const override;

  const SequenceSource& data() const { return *data_; }
  SequenceRange sequences() const { return options_.sequences; }
  const SampleIndex& index() const { return index_; }

  // Checks every token of the part against the vocabulary now, if the part is no larger than
  // `limit_bytes`; a larger one is checked as it is read. Returns whether it was checked. Throws
  // DataError.
  bool validate_tokens(int64_t limit_bytes = int64_t{256} << 20) const;

 private:
  std::shared_ptr<const SequenceSource> data_;
  GptDatasetOptions options_;
  SampleIndex index_;
};

}  // namespace sevenfold

#include "sevenfold/dataset/gpt_dataset.h"

#include <algorithm>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

SampleIndex build_index(const SequenceSource& data, const GptDatasetOptions& options) {
  SEVENFOLD_CHECK(options.vocab_size > 0, "vocab_size {}", options.vocab_size);
  SampleIndexOptions order;
  order.seq_length = options.seq_length;
  order.seed = options.seed;
  order.shuffle = options.shuffle;
  order.num_samples = options.num_samples;
  order.drop_last = options.drop_last;
  order.extra_token = options.extra_token;
  return cached_sample_index(data, options.sequences, order, options.cache);
}

}  // namespace

GptDataset::GptDataset(std::shared_ptr<const SequenceSource> data, const GptDatasetOptions& options)
    : data_(std::move(data)), options_(options), index_(build_index(*data_, options_)) {
  options_.cache = {};  // its callback need not outlive the building
}

void GptDataset::read(int64_t index, std::span<int64_t> tokens) const {
  SEVENFOLD_CHECK(index >= 0 && index < num_samples(), "sample {} of {}", index, num_samples());
  SEVENFOLD_CHECK_EQ(static_cast<int64_t>(tokens.size()), seq_length() + 1);
  const auto place = static_cast<size_t>(index_.place(index));
  SampleStart at = index_.starts[place];
  SampleStart end = index_.starts[place + 1];
  if (options_.extra_token) ++end.offset;
  const std::span<int64_t> wanted = options_.extra_token ? tokens : tokens.first(tokens.size() - 1);
  size_t num_read = 0;
  for (; num_read < wanted.size() && at.position <= end.position; at = {at.position + 1, 0}) {
    const int64_t sequence = index_.document_index[static_cast<size_t>(at.position)];
    const int64_t stop =
        at.position == end.position ? end.offset : data_->sequence_length(sequence);
    const auto piece = wanted.subspan(num_read).first(
        std::min(static_cast<size_t>(stop - at.offset), wanted.size() - num_read));
    data_->read(sequence, at.offset, piece);
    check_token_ids(*data_, sequence, at.offset, piece, options_.vocab_size);
    num_read += piece.size();
  }
  std::fill(tokens.begin() + static_cast<ptrdiff_t>(num_read), tokens.end(), kPaddingTokenId);
}

bool GptDataset::validate_tokens(int64_t limit_bytes) const {
  if (index_.tokens_per_epoch > limit_bytes / data_->bytes_per_token()) return false;
  check_token_ids(*data_, options_.sequences, options_.vocab_size);
  return true;
}

}  // namespace sevenfold

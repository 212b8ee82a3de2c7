#include "sevenfold/dataset/gpt_dataset.h"

#include <algorithm>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

SampleIndex build_index(const IndexedDataset& data, const GptDatasetOptions& options) {
  SEVENFOLD_CHECK(options.vocab_size > 0, "vocab_size {}", options.vocab_size);
  SampleIndexOptions order;
  order.seq_length = options.seq_length;
  order.seed = options.seed;
  order.shuffle = options.shuffle;
  if (options.shuffle) order.num_samples = options.num_samples;
  return build_sample_index(
      data.prefix(), [&](int64_t sequence) { return data.sequence_length(sequence); },
      options.sequences, order);
}

}  // namespace

GptDataset::GptDataset(std::shared_ptr<const IndexedDataset> data, const GptDatasetOptions& options)
    : data_(std::move(data)), options_(options), index_(build_index(*data_, options_)) {}

void GptDataset::read(int64_t index, std::span<int64_t> tokens) const {
  SEVENFOLD_CHECK(index >= 0 && index < num_samples(), "sample {} of {}", index, num_samples());
  SEVENFOLD_CHECK_EQ(static_cast<int64_t>(tokens.size()), seq_length() + 1);
  SampleStart at = index_.starts[static_cast<size_t>(index_.place(index))];
  while (!tokens.empty()) {
    const int64_t sequence = index_.document_index[static_cast<size_t>(at.position)];
    const int64_t available = data_->sequence_length(sequence) - at.offset;
    const auto piece =
        tokens.first(static_cast<size_t>(std::min(available, static_cast<int64_t>(tokens.size()))));
    data_->read(sequence, at.offset, piece);
    check_token_ids(*data_, sequence, at.offset, piece, options_.vocab_size);
    tokens = tokens.subspan(piece.size());
    at = {at.position + 1, 0};
  }
}

bool GptDataset::validate_tokens(int64_t limit_bytes) const {
  if (index_.tokens_per_epoch > limit_bytes / element_bytes(data_->element_type())) return false;
  check_token_ids(*data_, options_.sequences, options_.vocab_size);
  return true;
}

}  // namespace sevenfold

#include "sevenfold/dataset/batch.h"

#include "sevenfold/core/error.h"

namespace sevenfold {

void append_sequence(TokenBatch& batch, std::span<const int64_t> tokens, const MaskOptions& masks) {
  SEVENFOLD_CHECK_EQ(static_cast<int64_t>(tokens.size()), batch.seq_length + 1);
  SEVENFOLD_CHECK(!masks.eod_mask_loss || masks.eod_token_id.has_value(),
                  "eod_mask_loss without an end-of-document id");
  const auto without_pad = [&](int64_t token) { return token == masks.pad_token_id ? 0 : token; };
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const int64_t input = tokens[i];
    const int64_t label = tokens[i + 1];
    const bool ends_document = masks.eod_mask_loss && input == masks.eod_token_id;
    const bool is_trained = !ends_document && label != masks.pad_token_id;
    batch.inputs.push_back(without_pad(input));
    batch.labels.push_back(without_pad(label));
    batch.loss_mask.push_back(is_trained ? 1 : 0);
    batch.num_unmasked += is_trained ? 1 : 0;
  }
  ++batch.num_sequences;
}

TokenBatch read_batch(const SampleSource& source, std::span<const int64_t> samples,
                      const MaskOptions& masks) {
  TokenBatch batch;
  batch.seq_length = source.seq_length();
  std::vector<int64_t> tokens(static_cast<size_t>(batch.seq_length + 1));
  for (const int64_t sample : samples) {
    source.read(sample, tokens);
    append_sequence(batch, tokens, masks);
  }
  return batch;
}

std::vector<int64_t> sample_ids(const MicrobatchPlace& place, int64_t num_samples) {
  SEVENFOLD_CHECK(num_samples > 0, "{} samples", num_samples);
  SEVENFOLD_CHECK(place.dp_rank >= 0 && place.dp_rank < place.dp_size, "dp rank {} of {}",
                  place.dp_rank, place.dp_size);
  std::vector<int64_t> ids(static_cast<size_t>(place.micro_batch_size));
  int64_t next = place.first_sample();
  for (int64_t& id : ids) id = next++ % num_samples;
  return ids;
}

}  // namespace sevenfold

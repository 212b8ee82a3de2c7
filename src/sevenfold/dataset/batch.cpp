#include "sevenfold/dataset/batch.h"

#include "sevenfold/core/error.h"

namespace sevenfold {

namespace {

// Places are counted within the row; inputs[i] ends a document when it is the end-of-document.
void append_document_borders(TokenBatch& batch, std::span<const int64_t> inputs,
                             const MaskOptions& masks) {
  int64_t document_start = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (masks.reset_position_ids) batch.positions.push_back(place - document_start);
    if (masks.reset_attention_mask) batch.first_key.push_back(document_start);
    if (inputs[i] == masks.eod_token_id) document_start = place + 1;
  }
}

}  // namespace

void append_sequence(TokenBatch& batch, std::span<const int64_t> tokens, const MaskOptions& masks) {
  SEVENFOLD_CHECK_EQ(static_cast<int64_t>(tokens.size()), batch.seq_length + 1);
  const bool needs_eod =
      masks.eod_mask_loss || masks.reset_position_ids || masks.reset_attention_mask;
  SEVENFOLD_CHECK(!needs_eod || masks.eod_token_id.has_value(),
                  "a mask by documents without an end-of-document id");
  const auto is_pad = [&](int64_t token) {
    return token == kPaddingTokenId || token == masks.pad_token_id;
  };
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const int64_t input = tokens[i];
    const int64_t label = tokens[i + 1];
    const bool ends_document = masks.eod_mask_loss && input == masks.eod_token_id;
    const bool is_trained = !ends_document && !is_pad(label);
    batch.inputs.push_back(is_pad(input) ? 0 : input);
    batch.labels.push_back(is_pad(label) ? 0 : label);
    batch.loss_mask.push_back(is_trained ? 1 : 0);
    batch.num_unmasked += is_trained ? 1 : 0;
  }
  if (masks.reset_position_ids || masks.reset_attention_mask)
    append_document_borders(batch, tokens.first(tokens.size() - 1), masks);
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

}  // namespace sevenfold

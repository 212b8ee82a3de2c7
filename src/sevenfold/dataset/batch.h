#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sevenfold/dataset/sample_source.h"

namespace sevenfold {

struct MaskOptions {
  bool eod_mask_loss = false;
  bool reset_position_ids = false;      // positions restart in every document
  bool reset_attention_mask = false;    // attention stays in the document
  std::optional<int64_t> eod_token_id;  // needed by each of the three
  // A pad id of the tokenizer's own. Labels equal to it are not trained; it is replaced by 0
  // wherever it occurs. None: only kPaddingTokenId is (the rule for pad ids that equal another
  // special token).
  std::optional<int64_t> pad_token_id;
};

// Samples of one microbatch, row by row: [num_sequences, seq_length]. Attention is causal. Made
// from uncut sequences; whoever cuts them cuts labels, mask, positions and first keys alike.
struct TokenBatch {
  int64_t num_sequences = 0;
  int64_t seq_length = 0;
  std::vector<int64_t> inputs;
  std::vector<int64_t> labels;     // the token after each input
  std::vector<uint8_t> loss_mask;  // 1: the label is trained
  int64_t num_unmasked = 0;        // sum of loss_mask
  // With reset_position_ids: 0 at the first token and after each end-of-document. Else empty: 0 ..
  // S-1 in every row.
  std::vector<int64_t> positions;
  // With reset_attention_mask: the first position in its row that each query may see, the one after
  // the last end-of-document before it. Else empty: 0 everywhere.
  std::vector<int64_t> first_key;
};

// Appends one sequence, given as S inputs and the last label (S + 1 tokens). With eod_mask_loss a
// label is untrained where its *input* is end-of-document: what follows a document cannot be
// foretold.
void append_sequence(TokenBatch& batch, std::span<const int64_t> tokens, const MaskOptions& masks);

// Reads the samples and builds the batch. Throws DataError for bad data.
TokenBatch read_batch(const SampleSource& source, std::span<const int64_t> samples,
                      const MaskOptions& masks);

}  // namespace sevenfold

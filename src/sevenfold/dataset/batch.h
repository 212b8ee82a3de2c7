#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sevenfold/dataset/sample_source.h"

namespace sevenfold {

struct MaskOptions {
  bool eod_mask_loss = false;
  std::optional<int64_t> eod_token_id;  // needed by eod_mask_loss
  // A pad id of the tokenizer's own. Labels equal to it are not trained; it is replaced by 0
  // wherever it occurs. None: nothing is padded (the rule for pad ids that equal another special
  // token).
  std::optional<int64_t> pad_token_id;
};

// Samples of one microbatch, row by row: [num_sequences, seq_length]. Positions are 0..S-1 in every
// row and attention is causal. Made from uncut sequences; whoever cuts them cuts labels and mask
// alike.
struct TokenBatch {
  int64_t num_sequences = 0;
  int64_t seq_length = 0;
  std::vector<int64_t> inputs;
  std::vector<int64_t> labels;     // the token after each input
  std::vector<uint8_t> loss_mask;  // 1: the label is trained
  int64_t num_unmasked = 0;        // sum of loss_mask
  std::vector<int64_t> positions;  // empty: 0 .. S-1 in every row
  std::vector<int64_t> first_key;  // first position each query may see; empty: 0 everywhere
};

// Appends one sequence, given as S inputs and the last label (S + 1 tokens). With eod_mask_loss a
// label is untrained where its *input* is end-of-document: what follows a document cannot be
// foretold.
void append_sequence(TokenBatch& batch, std::span<const int64_t> tokens, const MaskOptions& masks);

// Reads the samples and builds the batch. Throws DataError for bad data.
TokenBatch read_batch(const SampleSource& source, std::span<const int64_t> samples,
                      const MaskOptions& masks);

// Place of a microbatch in the stream of consumed samples (Megatron's `single` order). The content
// of a global batch depends on neither the microbatch size nor the number of dp ranks.
struct MicrobatchPlace {
  int64_t consumed = 0;  // samples before this step, of all ranks
  int64_t microbatch = 0;
  int64_t dp_rank = 0;
  int64_t dp_size = 1;
  int64_t micro_batch_size = 1;

  // Position in the stream of the microbatch's first sample.
  int64_t first_sample() const {
    return consumed + (microbatch * dp_size + dp_rank) * micro_batch_size;
  }
};

// Ids of a microbatch's samples: consumed + (m*DP + r)*MB + j, modulo num_samples.
std::vector<int64_t> sample_ids(const MicrobatchPlace& place, int64_t num_samples);

}  // namespace sevenfold

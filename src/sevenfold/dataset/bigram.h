#pragma once

#include <cstdint>

#include "sevenfold/dataset/gpt_dataset.h"

namespace sevenfold {

// Largest vocabulary for which pair counts are kept (dense, 8 bytes a pair: 128 MiB).
inline constexpr int64_t kMaxBigramVocab = 4096;

// Cross entropy of a bigram model in nats per token: the yardstick that a trained model has to
// beat. p(b | a) = (count(a, b) + 1) / (count(a) + V), counted over consecutive tokens of `train`,
// averaged as -log p over consecutive tokens of `valid`; documents stand one after the other, in
// file order. Throws ConfigError for a larger vocabulary, DataError when `valid` has fewer than two
// tokens.
double bigram_cross_entropy(const GptDataset& train, const GptDataset& valid, int64_t vocab_size);
double bigram_cross_entropy(const SequenceSource& train, SequenceRange train_range,
                            const SequenceSource& valid, SequenceRange valid_range,
                            int64_t vocab_size);

}  // namespace sevenfold

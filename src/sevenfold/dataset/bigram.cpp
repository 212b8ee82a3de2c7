#include "sevenfold/dataset/bigram.h"

#include <cmath>
#include <vector>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// Calls visit(first, second) for all consecutive tokens of the range, document borders included.
template <typename Visit>
void for_each_pair(const SequenceSource& data, SequenceRange range, int64_t vocab_size,
                   Visit&& visit) {
  int64_t before = -1;
  for_each_piece(data, range,
                 [&](int64_t sequence, int64_t offset, std::span<const int64_t> tokens) {
                   check_token_ids(data, sequence, offset, tokens, vocab_size);
                   for (const int64_t token : tokens) {
                     if (before >= 0) visit(before, token);
                     before = token;
                   }
                 });
}

}  // namespace

double bigram_cross_entropy(const SequenceSource& train, SequenceRange train_range,
                            const SequenceSource& valid, SequenceRange valid_range,
                            int64_t vocab_size) {
  if (vocab_size > kMaxBigramVocab)
    raise<ConfigError>("dataset: bigram counts are kept for vocabularies up to {}, vocab_size={}",
                       kMaxBigramVocab, vocab_size);
  std::vector<int64_t> pairs(static_cast<size_t>(vocab_size * vocab_size));
  std::vector<int64_t> firsts(static_cast<size_t>(vocab_size));
  for_each_pair(train, train_range, vocab_size, [&](int64_t first, int64_t second) {
    ++pairs[static_cast<size_t>(first * vocab_size + second)];
    ++firsts[static_cast<size_t>(first)];
  });

  double sum = 0;
  int64_t count = 0;
  for_each_pair(valid, valid_range, vocab_size, [&](int64_t first, int64_t second) {
    const int64_t seen = pairs[static_cast<size_t>(first * vocab_size + second)];
    const int64_t total = firsts[static_cast<size_t>(first)];
    sum -= std::log(static_cast<double>(seen + 1) / static_cast<double>(total + vocab_size));
    ++count;
  });
  if (count == 0)
    raise<DataError>(
        "dataset: {}: documents {}..{} hold fewer than two tokens; nothing can be evaluated",
        valid.name(), valid_range.begin, valid_range.end);
  return sum / static_cast<double>(count);
}

double bigram_cross_entropy(const GptDataset& train, const GptDataset& valid, int64_t vocab_size) {
  return bigram_cross_entropy(train.data(), train.sequences(), valid.data(), valid.sequences(),
                              vocab_size);
}

}  // namespace sevenfold

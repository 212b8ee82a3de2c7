#include "sevenfold/dataset/order/sample_index.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>

#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dataset/order/numpy_random.h"

namespace sevenfold {
namespace {

struct Arrays {
  std::vector<int64_t> document_index;
  std::vector<SampleStart> starts;
  std::vector<int64_t> shuffle_index;
};

int64_t count_tokens(const SequenceLength& length, SequenceRange range) {
  int64_t tokens = 0;
  for (int64_t sequence = range.begin; sequence < range.end; ++sequence) tokens += length(sequence);
  return tokens;
}

// Smallest E >= 1 with E * T >= N * S + a.
int64_t count_epochs(int64_t tokens, int64_t extra, const SampleIndexOptions& options) {
  if (!options.num_samples) return 1;
  int64_t needed = 0;
  if (__builtin_mul_overflow(*options.num_samples, options.seq_length, &needed) ||
      needed > INT64_MAX - tokens)
    raise<ConfigError>(
        "dataset: {} samples of {} tokens are more than 64 bits count; ask for fewer",
        *options.num_samples, options.seq_length);
  return std::max<int64_t>(1, (needed + extra + tokens - 1) / tokens);
}

int64_t samples_in(int64_t tokens, int64_t extra, const SampleIndexOptions& options) {
  if (options.drop_last) return (tokens - extra) / options.seq_length;
  // Megatron divides in single precision here, and the rounding decides.
  const float samples = static_cast<float>(tokens - extra) / static_cast<float>(options.seq_length);
  return static_cast<int64_t>(std::ceil(samples));
}

// True when fewer than 80 % of the last epoch are needed: then it is shuffled apart, so that the
// whole epochs before it stay complete.
bool separates_final_epoch(int64_t tokens, int64_t epochs, int64_t extra,
                           const SampleIndexOptions& options) {
  if (epochs == 1 || !options.num_samples) return false;
  const int64_t before_final = ((epochs - 1) * tokens - extra) / options.seq_length;
  const int64_t from_final = *options.num_samples - before_final;
  const int64_t per_epoch = (tokens - extra) / options.seq_length;
  SEVENFOLD_CHECK(from_final >= 0 && from_final <= per_epoch + 1,
                  "{} of {} samples of the last epoch", from_final, per_epoch);
  return from_final < 4 * per_epoch / 5;
}

std::vector<int64_t> repeat(SequenceRange range, int64_t epochs) {
  std::vector<int64_t> documents(static_cast<size_t>(range.size() * epochs));
  const auto size = static_cast<size_t>(range.size());
  for (size_t start = 0; start < documents.size(); start += size)
    std::iota(documents.begin() + static_cast<ptrdiff_t>(start),
              documents.begin() + static_cast<ptrdiff_t>(start + size), range.begin);
  return documents;
}

// Shuffles the first `head` values and the rest, each by itself, in this order.
void shuffle_in_two(NumpyRandom& random, std::vector<int64_t>& values, int64_t head) {
  const std::span<int64_t> all(values);
  random.shuffle(all.first(static_cast<size_t>(head)));
  random.shuffle(all.subspan(static_cast<size_t>(head)));
}

void check_enough_tokens(const std::string& name, SequenceRange range, int64_t tokens,
                         int64_t epochs, int64_t sample_tokens) {
  if (tokens > 0 && epochs * tokens >= sample_tokens) return;
  raise<DataError>(
      "dataset: {}: documents {}..{} hold {} tokens, but one sample takes {} (seq_length and "
      "the last label); use more text or a shorter seq_length",
      name, range.begin, range.end, with_commas(tokens), with_commas(sample_tokens));
}

// A little text asked for very many samples repeats it very often, and every repetition is listed.
void check_index_size(const std::string& name, SequenceRange range, int64_t epochs,
                      int64_t num_samples) {
  int64_t num_documents = 0;
  if (!__builtin_mul_overflow(range.size(), epochs, &num_documents) &&
      num_documents <= kMaxIndexEntries && num_samples <= kMaxIndexEntries)
    return;
  raise<DataError>(
      "dataset: {}: {} samples take {} epochs of {} documents, more than an index can list "
      "({} entries); use more text or ask for fewer samples",
      name, with_commas(num_samples), with_commas(epochs), with_commas(range.size()),
      with_commas(kMaxIndexEntries));
}

}  // namespace

std::vector<SampleStart> build_sample_starts(const SequenceLength& length,
                                             const std::vector<int64_t>& document_index,
                                             int64_t num_samples,
                                             const SampleIndexOptions& options) {
  const int64_t extra = options.extra_token ? 1 : 0;
  const auto num_documents = static_cast<int64_t>(document_index.size());
  std::vector<SampleStart> starts;
  starts.reserve(static_cast<size_t>(num_samples + 1));
  starts.push_back({});
  SampleStart at;
  SampleStart end;  // just before the last `extra` tokens of the last document that has any
  while (static_cast<int64_t>(starts.size()) <= num_samples) {
    int64_t remaining = options.seq_length + extra;
    for (;;) {
      const int64_t document = length(document_index[static_cast<size_t>(at.position)]);
      if (document > 0) end = {at.position, document - extra};
      const int64_t left = document - at.offset;
      remaining -= left;
      if (remaining <= 0) {  // the next sample reads the last label again, as its first input
        at.offset += remaining + left - extra;
        break;
      }
      if (at.position == num_documents - 1) {
        // Megatron gives offset -1 when the last document is empty; the last token that is there is
        // meant.
        SEVENFOLD_CHECK(!options.drop_last, "sample {} of {} runs past the data", starts.size(),
                        num_samples);
        at = end;
        break;
      }
      at = {at.position + 1, 0};
    }
    starts.push_back(at);
  }
  return starts;
}

SampleCounts count_samples(const std::string& name, const SequenceLength& length,
                           SequenceRange range, const SampleIndexOptions& options) {
  SEVENFOLD_CHECK(options.seq_length > 0, "seq_length {}", options.seq_length);
  const int64_t extra = options.extra_token ? 1 : 0;
  const int64_t tokens = count_tokens(length, range);
  check_enough_tokens(name, range, tokens, 1, 1);
  SampleCounts counts;
  counts.tokens_per_epoch = tokens;
  counts.num_epochs = count_epochs(tokens, extra, options);
  const int64_t least = options.drop_last ? options.seq_length + extra : 1 + extra;
  check_enough_tokens(name, range, tokens, counts.num_epochs, least);
  counts.separate_final_epoch = separates_final_epoch(tokens, counts.num_epochs, extra, options);
  counts.num_samples = samples_in(counts.num_epochs * tokens, extra, options);
  check_index_size(name, range, counts.num_epochs, counts.num_samples);
  counts.num_documents = counts.num_epochs * range.size();
  return counts;
}

SampleIndex build_sample_index(const std::string& name, const SequenceLength& length,
                               SequenceRange range, const SampleIndexOptions& options) {
  const SampleCounts counts = count_samples(name, length, range, options);
  auto arrays = std::make_shared<Arrays>();
  // One generator, used in this order: documents, then samples.
  std::optional<NumpyRandom> random;
  if (options.shuffle) random.emplace(options.seed);
  arrays->document_index = repeat(range, counts.num_epochs);
  const int64_t whole_epochs = counts.num_epochs - (counts.separate_final_epoch ? 1 : 0);
  if (random) shuffle_in_two(*random, arrays->document_index, whole_epochs * range.size());

  arrays->starts = build_sample_starts(length, arrays->document_index, counts.num_samples, options);
  if (random) {
    arrays->shuffle_index.resize(static_cast<size_t>(counts.num_samples));
    std::iota(arrays->shuffle_index.begin(), arrays->shuffle_index.end(), int64_t{0});
    const int64_t extra = options.extra_token ? 1 : 0;
    const int64_t head = counts.separate_final_epoch
                             ? (whole_epochs * counts.tokens_per_epoch - extra) / options.seq_length
                             : counts.num_samples;
    shuffle_in_two(*random, arrays->shuffle_index, head);
  }
  return {.num_epochs = counts.num_epochs,
          .tokens_per_epoch = counts.tokens_per_epoch,
          .separate_final_epoch = counts.separate_final_epoch,
          .document_index = arrays->document_index,
          .starts = arrays->starts,
          .shuffle_index = arrays->shuffle_index,
          .storage = arrays};
}

}  // namespace sevenfold

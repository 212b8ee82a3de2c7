#include "sevenfold/dataset/synthetic_source.h"

#include <array>

#include "sevenfold/core/error.h"
#include "sevenfold/core/random.h"

namespace sevenfold {
namespace {

// Text tokens in the samples of a row of eight, in eighths of S: from all to none.
constexpr std::array<int64_t, 8> kTextEighths = {8, 1, 4, 2, 8, 0, 3, 7};
constexpr uint64_t kTokensPerDocument = 13;  // on average, inside the text

}  // namespace

SyntheticSource::SyntheticSource(const SyntheticOptions& options) : options_(options) {
  SEVENFOLD_CHECK(options.vocab_size >= 2 && options.seq_length >= 1 && options.num_samples >= 1,
                  "vocabulary {}, seq_length {}, {} samples", options.vocab_size,
                  options.seq_length, options.num_samples);
}

int64_t SyntheticSource::token_at(int64_t position) const {
  const int64_t sample = position / options_.seq_length;
  const int64_t place = position % options_.seq_length;
  const int64_t eighths = kTextEighths[static_cast<size_t>(sample) % kTextEighths.size()];
  if (8 * place >= eighths * options_.seq_length) return kEodTokenId;
  const auto counter = static_cast<uint64_t>(position);
  const bool full = eighths == 8;  // one kind of sample has no end-of-document at all
  if (!full &&
      ElementStream::seeded("synthetic.border", options_.seed).bits(counter) % kTokensPerDocument ==
          0)
    return kEodTokenId;
  const uint64_t bits = ElementStream::seeded("synthetic.token", options_.seed).bits(counter);
  return 1 + static_cast<int64_t>(bits % static_cast<uint64_t>(options_.vocab_size - 1));
}

void SyntheticSource::read(int64_t index, std::span<int64_t> tokens) const {
  SEVENFOLD_CHECK(index >= 0 && index < num_samples(), "sample {} of {}", index, num_samples());
  SEVENFOLD_CHECK_EQ(static_cast<int64_t>(tokens.size()), seq_length() + 1);
  int64_t position = index * options_.seq_length;
  for (int64_t& token : tokens) token = token_at(position++);
}

}  // namespace sevenfold

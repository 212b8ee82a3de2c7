#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace sevenfold {

// Philox 4x32-10: four random 32-bit numbers as a function of a counter and a key, in integer
// arithmetic alone, so every machine draws the same bits. Source: Salmon et al. 2011, "Parallel
// random numbers: as easy as 1, 2, 3".
using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// The operations of a layer that draw random numbers. The numbers are part of what a run computes:
// never renumber them.
enum class RandomOperation : uint8_t {
  kEmbeddingDropout = 0,        // of the embedded tokens; layer 0
  kAttentionDropout = 1,        // of the attention probabilities, per head
  kAttentionOutputDropout = 2,  // of what attention adds to the residual
  kFeedForwardDropout = 3,      // of what the feed-forward part adds to the residual
};

// Where in the model numbers are drawn, in global terms: the layer of the whole model and the head
// of the whole layer, never those of a rank.
struct RandomSite {
  uint64_t seed = 0;  // of the run
  int64_t layer = 0;  // below 2^31
  RandomOperation operation = RandomOperation::kEmbeddingDropout;
  int64_t head = 0;  // below 2^24; 0 where the operation has none
};

// The random numbers of one site: number (sample, position, column) is a function of these global
// coordinates alone, so a rank that holds any slice of the tokens, heads or columns draws exactly
// its part, in any order and as often as it likes.
//
//   key      m(m(seed) + layer * 2^32 + operation * 2^24 + head), low word first; m is
//            scatter64 of random.h, a bijection: no two sites of a run share a key
//   counter  { column / 4, position, sample mod 2^32, sample / 2^32 }
//   number   word column mod 4 of philox4x32(counter, key)
//
//   sample    place in the endless stream of consumed samples of the run (an epoch later, the same
//             text has another number), at least 0
//   position  of the token in its uncut sequence, 0 .. T-1; of the query in attention
//   column    of the hidden state; the position of the key in attention
class RandomStream {
 public:
  explicit RandomStream(const RandomSite& site);

  // numbers[i] = number (sample, position, first_column + i).
  void draw(int64_t sample, int64_t position, int64_t first_column,
            std::span<uint32_t> numbers) const;

 private:
  PhiloxKey key_;
};

}  // namespace sevenfold

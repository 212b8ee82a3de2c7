#include "sevenfold/dataset/mock_documents.h"

#include <bit>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

__extension__ using Word128 = unsigned __int128;

constexpr Word128 word128(uint64_t high, uint64_t low) {
  return static_cast<Word128>(high) << 64 | low;
}

// numpy's default_rng(0): PCG64 (XSL-RR) as its seeding leaves it, and the bounded draw of
// Generator.integers for 32-bit values.
class NumpyGenerator {
 public:
  // Uniform in 0 .. count-1.
  uint32_t below(uint32_t count) {
    // Numbers whose low word falls under this would come up once too often.
    const uint32_t threshold = static_cast<uint32_t>(-count) % count;
    for (;;) {
      const uint64_t product = static_cast<uint64_t>(bits32()) * count;
      if (static_cast<uint32_t>(product) >= threshold) return static_cast<uint32_t>(product >> 32);
    }
  }

 private:
  uint32_t bits32() {
    if (has_high_) {
      has_high_ = false;
      return static_cast<uint32_t>(bits_ >> 32);
    }
    bits_ = bits64();
    has_high_ = true;
    return static_cast<uint32_t>(bits_);
  }

  uint64_t bits64() {
    state_ = state_ * kMultiplier + kIncrement;
    const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    return std::rotr(folded, static_cast<int>(state_ >> 122));
  }

  static constexpr Word128 kMultiplier = word128(0x2360ED051FC65DA4, 0x4385DF649FCCF645);
  static constexpr Word128 kIncrement = word128(0x418DDADB3AF71A82, 0x588133BC447873A9);

  Word128 state_ = word128(0x1AA1B5345996452D, 0x09585EB7A69561E3);
  uint64_t bits_ = 0;
  bool has_high_ = false;
};

constexpr uint32_t kLengths = 4095;  // 1 .. 4095

}  // namespace

MockDocuments::MockDocuments(int64_t vocab_size, int64_t eod_token_id)
    : vocab_size_(vocab_size), eod_token_id_(eod_token_id) {
  SEVENFOLD_CHECK(eod_token_id >= 0 && eod_token_id < vocab_size,
                  "end of document {} in a vocabulary of {}", eod_token_id, vocab_size);
  NumpyGenerator generator;
  lengths_.resize(static_cast<size_t>(kNumDocuments));
  for (int32_t& length : lengths_) length = 1 + static_cast<int32_t>(generator.below(kLengths));
}

void MockDocuments::read(int64_t sequence, int64_t offset, std::span<int64_t> tokens) const {
  const int64_t length = sequence_length(sequence);
  const auto count = static_cast<int64_t>(tokens.size());
  SEVENFOLD_CHECK(offset >= 0 && count <= length && offset <= length - count,
                  "tokens {}..{} of document {} with {} tokens", offset, offset + count, sequence,
                  length);
  for (int64_t& token : tokens) {
    ++offset;
    token = offset == length ? eod_token_id_ : offset % vocab_size_;
  }
}

}  // namespace sevenfold

#pragma once

#include <cstdint>
#include <span>

namespace sevenfold {

// Stands where a sample has no token: behind the end of the data. Never trained, read as token 0.
inline constexpr int64_t kPaddingTokenId = -1;

// Where training samples come from. Implementations are safe to read from several threads at once:
// ranks that are threads share one source.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t seq_length() const = 0;
  // Number of distinct samples; at least 1.
  virtual int64_t num_samples() const = 0;
  // Tokens of sample `index` (0 <= index < num_samples()): S inputs followed by the last label, so
  // tokens.size() == S + 1, inputs are tokens[0..S-1] and labels tokens[1..S]. What a partial last
  // sample lacks is kPaddingTokenId.
  // Throws DataError (file, document, position) for a token that the file does not hold.
  virtual void read(int64_t index, std::span<int64_t> tokens) const = 0;
};

}  // namespace sevenfold

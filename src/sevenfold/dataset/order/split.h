#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sevenfold/dataset/sequence_source.h"

namespace sevenfold {

enum class Split : uint8_t { kTrain, kValid, kTest };

// The parts of a data set by Megatron's split string ("969, 30, 1"; any separator), in sequences. A
// part of weight 0 is absent. A part that is there may be empty when there are few sequences.
// Throws ConfigError for a string that says nothing sensible. Signs and exponents, of which
// Megatron would read the digits alone, are refused too.
std::array<std::optional<SequenceRange>, 3> split_sequences(const std::string& split,
                                                            int64_t num_sequences);

// One part, which must hold at least one sequence. Throws ConfigError, naming the way out.
SequenceRange require_split(const std::string& split, const SequenceSource& data, Split which);

}  // namespace sevenfold

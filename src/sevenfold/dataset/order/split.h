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
// Throws ConfigError for a string that says nothing sensible (read_split).
std::array<std::optional<SequenceRange>, 3> split_sequences(const std::string& split,
                                                            int64_t num_sequences);

// One part, which must hold at least one sequence. Throws ConfigError, naming the way out; it
// begins with `where` ("run.yaml:31 split=98,2"), or with the string if that is empty.
SequenceRange require_split(const std::string& split, const SequenceSource& data, Split which,
                            const std::string& where = "");

}  // namespace sevenfold

#pragma once

#include <array>
#include <string>

namespace sevenfold {

// Megatron's split string: the weights of training, validation and test.
struct SplitWeights {
  std::array<double, 3> weights{};
  std::string fault;  // what is wrong with the string, and the way out; empty: nothing
};

// Every maximal run of digits and dots is a weight ("969, 30, 1"; any separator); what is not named
// is 0. Signs and exponents, of which Megatron would read the digits alone, are faults, and so are
// a fourth number and weights without a sum.
SplitWeights read_split(const std::string& split);

}  // namespace sevenfold

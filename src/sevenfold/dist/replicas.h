#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sevenfold/dist/communicator.h"

namespace sevenfold {

// True if every member of the group holds the same bits in `tensor` (element type, number of
// elements and values; NaNs and signed zeros count by their bits). Collective: all members get the
// same answer. Compares 64-bit hashes, 16 bytes of traffic; two different tensors pass with
// probability 2^-64.
bool bits_equal_over(Communicator& group, const at::Tensor& tensor);

// The hash: of the bits of a contiguous CPU tensor, by position.
uint64_t hash_bits(const at::Tensor& tensor);

}  // namespace sevenfold

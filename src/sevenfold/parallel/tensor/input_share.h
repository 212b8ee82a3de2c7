#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/dist/communicator.h"

namespace sevenfold {

// This rank's share of a tensor that all ranks of a tensor-parallel group hold alike: run r of n of
// its elements in row-major order, sizes differing by one element at most. Source: Megatron-LM,
// distribute_saved_activations.
class InputShare {
 public:
  // Copies the share; the whole may go then. The group outlives the share.
  InputShare(const at::Tensor& whole, Communicator& group);

  // The whole, put together from all shares: an all-gather, and memory booked as communication.
  at::Tensor whole() const;

 private:
  std::vector<int64_t> shape_;
  at::Tensor share_;
  Communicator* group_;
};

}  // namespace sevenfold

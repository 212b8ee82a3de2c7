#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// Sequences cut into equal parts, one per tensor-parallel rank in order. Rank r of n holds tokens
// r T / n .. (r + 1) T / n - 1 of every sample. Buffers of collectives are booked as communication.

// An all-gather under way: the parts of all ranks, [B, T / n, D] each, become [B, T, D].
class SequenceGather {
 public:
  SequenceGather(const at::Tensor& part_BSD, const TensorParallel& tensor);
  // The whole sequences. Once.
  at::Tensor wait();

 private:
  at::Tensor part_;   // contiguous; read until the gather ends
  at::Tensor parts_;  // [n, B, T / n, D]
  Work work_;
};

// A reduce-scatter under way: this rank's part [B, T / n, D] of the sum of what the ranks have,
// [B, T, D] each.
class SequenceReduction {
 public:
  SequenceReduction(const at::Tensor& partial_BTD, const TensorParallel& tensor);
  at::Tensor wait();

 private:
  at::Tensor partial_;  // [n, B, T / n, D]; read until the reduction ends
  at::Tensor own_;      // [B, T / n, D]
  Work work_;
};

// This rank's part of whole sequences, contiguous.
at::Tensor own_part(const at::Tensor& x_BTD, const TensorParallel& tensor);
// Place of the first token of a rank's part of `length` tokens.
int64_t first_position(int64_t length, const TensorParallel& tensor);

}  // namespace sevenfold

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/dist/communicator.h"

namespace sevenfold {

// Sums over ranks that send elements of another type than the tensors have (grad_reduce_in_bf16):
// every rank's part is rounded to `type`, the sum is formed wider (Communicator) and rounded to
// `type` once, and when it has been waited for the tensor holds it in its own type. The rounded
// copy lives until then, booked as communication. Where the tensor has the type, or there is one
// rank, these are the plain operations.

Work all_reduce_as(at::ScalarType type, Communicator& group, const at::Tensor& tensor);
// As Communicator::reduce_scatter; of the input's memory only the output is written.
Work reduce_scatter_as(at::ScalarType type, Communicator& group, const at::Tensor& output,
                       const at::Tensor& input, const std::vector<int64_t>& sizes);

}  // namespace sevenfold

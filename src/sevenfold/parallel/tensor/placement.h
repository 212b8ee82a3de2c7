#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/parallel/tensor/tensor_parallel.h"
#include "sevenfold/param/shard_spec.h"

namespace sevenfold {

// Where the parameters of a layer lie on the tensor-parallel ranks. Weights are [outputs, inputs];
// the guide writes Y = X W with W [inputs, outputs], so its columns are rows here.

// Cut along the outputs (dimension 0). copies: neighbours that hold the same part (fewer KV heads
// than ranks), each with the gradient of its own query heads.
ShardSpec column_parallel_spec(std::vector<int64_t> shape, const TensorParallel& tensor,
                               int64_t copies = 1);
// Cut along the inputs (dimension 1).
ShardSpec row_parallel_spec(std::vector<int64_t> shape, const TensorParallel& tensor);
// Rows of a vocabulary, in parts that differ by one row at most: nothing is padded.
ShardSpec vocabulary_parallel_spec(std::vector<int64_t> shape, const TensorParallel& tensor);
// Held whole by every rank. has_partial_gradient: each rank's gradient covers only its heads or its
// part of the sequence.
ShardSpec replicated_spec(std::vector<int64_t> shape, const TensorParallel& tensor,
                          bool has_partial_gradient);

// First row of the vocabulary that this rank holds, as vocabulary_parallel_spec cuts it.
int64_t first_vocabulary_row(int64_t vocab_size, const TensorParallel& tensor);

}  // namespace sevenfold

#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// The two linear layers of tensor parallelism where the input, or the output, is a part of the
// sequence (guide, chapter 5; its sentence on the collectives has them the wrong way round): the
// all-gather stands before the column-parallel layers, the reduce-scatter after the row-parallel
// one. Together they send what one all-reduce sends. Source: Korthikanti et al. 2022,
// section 4.2.2.

// x [B, T / n, D], this rank's tokens;  weights[i] [F_i / n, D]  ->  y_i [B T, F_i / n], this
// rank's columns of all tokens.
//
// Keeps only the part x (or with `again` only that, which gives x once more), not what was
// gathered: backward gathers again, under way while the input's gradient is computed, and
// reduce-scatters that gradient while the weight gradients are.
std::vector<at::Tensor> gathering_column_linear(const at::Tensor& x,
                                                const std::vector<Parameter*>& weights,
                                                WeightGradients& gradients,
                                                const TensorParallel& tensor,
                                                const WeightGradients::InputSource& again = {});

// x [B T, F / n], this rank's columns of B samples of T tokens;  weight [D, F / n]  ->
// y [B, T / n, D], this rank's tokens of the sum. Keeps x, or with `again` only that. Backward
// gathers the output's gradient.
at::Tensor scattering_row_linear(const at::Tensor& x, int64_t num_samples,
                                 const std::vector<Parameter*>& weight, WeightGradients& gradients,
                                 const TensorParallel& tensor,
                                 const WeightGradients::InputSource& again = {});

// This rank's part of the sum over the ranks: x [B, T, D] -> [B, T / n, D]. Backward gathers.
at::Tensor reduce_scatter_to_sp(const at::Tensor& x, const TensorParallel& tensor);

}  // namespace sevenfold

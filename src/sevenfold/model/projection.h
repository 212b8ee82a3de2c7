#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sevenfold/model/parameter_list.h"
#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// A hidden state x_BTD: with sequence parallelism this rank's part of the sequence, else whole.

// Linear layers that read one hidden state and are cut by their outputs: x_BTD -> y_i [B T, F_i /
// n] of all tokens, plus the biases of those that have one.
class ColumnProjections {
 public:
  ColumnProjections() = default;
  explicit ColumnProjections(const TensorParallel& tensor) : tensor_(tensor) {}
  void add(const LinearParameters& layer) {
    layers_.push_back(layer);
    weights_.push_back(layer.weight);
  }

  // again: gives x_BTD once more in backward, so that it is not kept.
  std::vector<at::Tensor> operator()(const at::Tensor& x_BTD, WeightGradients& gradients,
                                     const WeightGradients::InputSource& again = {}) const;
  void list_parameters(std::vector<Parameter*>& list) const;

 private:
  TensorParallel tensor_;
  std::vector<LinearParameters> layers_;
  std::vector<Parameter*> weights_;  // the layers' own
};

// The linear layer behind them, cut by its inputs: y [B T, F / n] -> a hidden state. The bias is
// added once, after the sum over the ranks.
class RowProjection {
 public:
  RowProjection() = default;
  RowProjection(const TensorParallel& tensor, const LinearParameters& layer)
      : tensor_(tensor), weight_{layer.weight}, bias_(layer.bias) {}

  // num_samples: B. again: gives y once more in backward, so that it is not kept.
  at::Tensor operator()(const at::Tensor& y, int64_t num_samples, WeightGradients& gradients,
                        const WeightGradients::InputSource& again = {}) const;
  void list_parameters(std::vector<Parameter*>& list) const;

 private:
  TensorParallel tensor_;
  std::vector<Parameter*> weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace sevenfold

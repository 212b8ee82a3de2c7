#include "sevenfold/model/projection.h"

#include "sevenfold/nn/bias.h"
#include "sevenfold/parallel/sequence/sequence_parallel_linear.h"
#include "sevenfold/parallel/tensor/column_parallel_linear.h"
#include "sevenfold/parallel/tensor/row_parallel_linear.h"

namespace sevenfold {
namespace {

at::Tensor rows_of(const at::Tensor& x_BTD) {
  return x_BTD.view({-1, x_BTD.size(2)});
}

WeightGradients::InputSource rows_of(const WeightGradients::InputSource& again) {
  if (!again) return {};
  return [again] { return rows_of(again()); };
}

at::Tensor with_bias(const at::Tensor& y, const Parameter& bias, const WeightGradients& gradients) {
  const at::Tensor y_NF = y.view({-1, y.size(-1)});
  return add_bias(y_NF, bias, gradients.faults()).view_as(y);
}

}  // namespace

std::vector<at::Tensor> ColumnProjections::operator()(
    const at::Tensor& x_BTD, WeightGradients& gradients,
    const WeightGradients::InputSource& again) const {
  std::vector<at::Tensor> outputs =
      tensor_.splits_sequence()
          ? gathering_column_linear(x_BTD, weights_, gradients, tensor_, again)
          : column_parallel_linear(rows_of(x_BTD), weights_, gradients, tensor_, rows_of(again));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (layers_[i].bias) outputs[i] = with_bias(outputs[i], *layers_[i].bias, gradients);
  return outputs;
}

void ColumnProjections::list_parameters(std::vector<Parameter*>& list) const {
  for (const LinearParameters& layer : layers_) {
    list.push_back(layer.weight);
    if (layer.bias) list.push_back(layer.bias);
  }
}

at::Tensor RowProjection::operator()(const at::Tensor& y, int64_t num_samples,
                                     WeightGradients& gradients,
                                     const WeightGradients::InputSource& again) const {
  at::Tensor x_BTD;
  if (tensor_.splits_sequence()) {
    x_BTD = scattering_row_linear(y, num_samples, weight_, gradients, tensor_, again);
  } else {
    const at::Tensor x_ND = row_parallel_linear(y, weight_, gradients, tensor_, again);
    x_BTD = x_ND.view({num_samples, -1, x_ND.size(1)});
  }
  if (!bias_) return x_BTD;
  const int64_t times = tensor_.faults.has(Fault::kBiasPerRank) ? tensor_.size() : 1;
  for (int64_t i = 0; i < times; ++i) x_BTD = with_bias(x_BTD, *bias_, gradients);
  return x_BTD;
}

void RowProjection::list_parameters(std::vector<Parameter*>& list) const {
  list.push_back(weight_.front());
  if (bias_) list.push_back(bias_);
}

}  // namespace sevenfold

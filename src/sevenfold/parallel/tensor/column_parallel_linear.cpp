#include "sevenfold/parallel/tensor/column_parallel_linear.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/kept_input.h"
#include "sevenfold/nn/linear.h"
#include "sevenfold/parallel/tensor/columns.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct ColumnParallelFunction : torch::autograd::Function<ColumnParallelFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const std::vector<Parameter*>* weights, WeightGradients* gradients,
                               const TensorParallel* tensor,
                               const WeightGradients::InputSource* again) {
    internal::keep_input(context, x, *again);
    internal::save_pointer(context, "weights", *weights);
    internal::save_pointer(context, "gradients", *gradients);
    internal::save_pointer(context, "tensor", *tensor);
    variable_list outputs;
    for (const Parameter* weight : *weights) outputs.push_back(linear_output(x, *weight));
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& weights =
        internal::saved_pointer<const std::vector<Parameter*>>(context, "weights");
    auto& gradients = internal::saved_pointer<WeightGradients>(context, "gradients");
    const auto& tensor = internal::saved_pointer<const TensorParallel>(context, "tensor");
    for (at::Tensor& dy : d_outputs) dy = dy.contiguous();
    const at::Tensor dx = linear_input_gradient(d_outputs, weights);
    Work sum = start_sum(dx, tensor);
    if (!tensor.overlap) sum.wait();
    gradients.add(weights, std::move(d_outputs), internal::kept_input(context, gradients));
    sum.wait();
    if (tensor.is_split() && tensor.faults.has(Fault::kTensorInputSumTwice))
      tensor.group->all_reduce(dx).wait();
    return {dx, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static Work start_sum(const at::Tensor& dx, const TensorParallel& tensor) {
    if (!tensor.is_split() || tensor.faults.has(Fault::kTensorInputSumMissing)) return {};
    return tensor.group->all_reduce(dx);
  }
};

struct GatherFunction : torch::autograd::Function<GatherFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y,
                            const TensorParallel* tensor) {
    internal::save_pointer(context, "tensor", *tensor);
    return gathered_columns(y, *tensor);
  }
  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& tensor = internal::saved_pointer<const TensorParallel>(context, "tensor");
    return {own_columns(d_outputs[0], tensor), at::Tensor()};
  }
};

}  // namespace

std::vector<at::Tensor> column_parallel_linear(const at::Tensor& x,
                                               const std::vector<Parameter*>& weights,
                                               WeightGradients& gradients,
                                               const TensorParallel& tensor,
                                               const WeightGradients::InputSource& again) {
  return ColumnParallelFunction::apply(x, &weights, &gradients, &tensor, &again);
}

at::Tensor gather_from_tp(const at::Tensor& y, const TensorParallel& tensor) {
  return tensor.is_split() ? GatherFunction::apply(y, &tensor) : y;
}

}  // namespace sevenfold

#include "sevenfold/parallel/tensor/row_parallel_linear.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/kept_input.h"
#include "sevenfold/nn/linear.h"
#include "sevenfold/parallel/tensor/columns.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

// In place.
void sum_over_tp(const at::Tensor& y, const TensorParallel& tensor) {
  if (!tensor.is_split() || tensor.faults.has(Fault::kTensorSumMissing)) return;
  tensor.group->all_reduce(y).wait();
  if (tensor.faults.has(Fault::kTensorSumTwice)) tensor.group->all_reduce(y).wait();
}

struct RowParallelFunction : torch::autograd::Function<RowParallelFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::vector<Parameter*>* weight, WeightGradients* gradients,
                            const TensorParallel* tensor,
                            const WeightGradients::InputSource* again) {
    internal::keep_input(context, x, *again);
    internal::save_pointer(context, "weight", *weight);
    internal::save_pointer(context, "gradients", *gradients);
    const at::Tensor y = linear_output(x, *weight->front());
    sum_over_tp(y, *tensor);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& weight = internal::saved_pointer<const std::vector<Parameter*>>(context, "weight");
    auto& gradients = internal::saved_pointer<WeightGradients>(context, "gradients");
    const at::Tensor dy = d_outputs[0].contiguous();
    gradients.add(weight, {dy}, internal::kept_input(context, gradients));
    return {linear_input_gradient({dy}, weight), at::Tensor(), at::Tensor(), at::Tensor(),
            at::Tensor()};
  }
};

struct ScatterFunction : torch::autograd::Function<ScatterFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const TensorParallel* tensor) {
    internal::save_pointer(context, "tensor", *tensor);
    return own_columns(x, *tensor);
  }
  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& tensor = internal::saved_pointer<const TensorParallel>(context, "tensor");
    return {gathered_columns(d_outputs[0], tensor), at::Tensor()};
  }
};

struct ReduceFunction : torch::autograd::Function<ReduceFunction> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, const TensorParallel* tensor) {
    const at::Tensor sum = x.clone(at::MemoryFormat::Contiguous);
    sum_over_tp(sum, *tensor);
    return sum;
  }
  static variable_list backward(AutogradContext*, variable_list d_outputs) {
    return {d_outputs[0], at::Tensor()};
  }
};

}  // namespace

at::Tensor row_parallel_linear(const at::Tensor& x, const std::vector<Parameter*>& weight,
                               WeightGradients& gradients, const TensorParallel& tensor,
                               const WeightGradients::InputSource& again) {
  return RowParallelFunction::apply(x, &weight, &gradients, &tensor, &again);
}

at::Tensor scatter_to_tp(const at::Tensor& x, const TensorParallel& tensor) {
  return tensor.is_split() ? ScatterFunction::apply(x, &tensor) : x;
}

at::Tensor reduce_from_tp(const at::Tensor& x, const TensorParallel& tensor) {
  return tensor.is_split() ? ReduceFunction::apply(x, &tensor) : x;
}

}  // namespace sevenfold

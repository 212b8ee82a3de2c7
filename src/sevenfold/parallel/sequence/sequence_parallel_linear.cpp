#include "sevenfold/parallel/sequence/sequence_parallel_linear.h"

#include <ATen/ATen.h>

#include <memory>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/kept_input.h"
#include "sevenfold/nn/linear.h"
#include "sevenfold/parallel/sequence/sequence_shards.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

at::Tensor rows_of(const at::Tensor& x_BTD) {
  return x_BTD.reshape({-1, x_BTD.size(2)});
}

// This rank's tokens of the sum of [B, T, D]; with planted faults, something else.
at::Tensor scattered_sum(const at::Tensor& x_BTD, const TensorParallel& tensor) {
  if (tensor.faults.has(Fault::kTensorSumMissing)) return own_part(x_BTD, tensor);
  const at::Tensor sum = SequenceReduction(x_BTD, tensor).wait();
  return tensor.faults.has(Fault::kTensorSumTwice) ? sum * tensor.size() : sum;
}

struct GatheringColumnFunction : torch::autograd::Function<GatheringColumnFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const std::vector<Parameter*>* weights, WeightGradients* gradients,
                               const TensorParallel* tensor,
                               const WeightGradients::InputSource* again) {
    internal::keep_input(context, x, *again);
    context->saved_data["num_samples"] = x.size(0);
    internal::save_pointer(context, "weights", *weights);
    internal::save_pointer(context, "gradients", *gradients);
    internal::save_pointer(context, "tensor", *tensor);
    const at::Tensor gathered_ND = rows_of(SequenceGather(x, *tensor).wait());
    variable_list outputs;
    for (const Parameter* weight : *weights) outputs.push_back(linear_output(gathered_ND, *weight));
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& weights =
        internal::saved_pointer<const std::vector<Parameter*>>(context, "weights");
    auto& gradients = internal::saved_pointer<WeightGradients>(context, "gradients");
    const auto& tensor = internal::saved_pointer<const TensorParallel>(context, "tensor");
    for (at::Tensor& dy : d_outputs) dy = dy.contiguous();
    const WeightGradients::InputSource gathered =
        gather_again(internal::kept_input(context, gradients), tensor, gradients);
    const at::Tensor dx_ND = linear_input_gradient(d_outputs, weights);
    const at::Tensor dx_BTD =
        dx_ND.view({context->saved_data["num_samples"].toInt(), -1, dx_ND.size(1)});
    if (tensor.faults.has(Fault::kTensorInputSumMissing)) {
      gradients.add(weights, std::move(d_outputs), gathered);
      return {own_part(dx_BTD, tensor), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
    }
    SequenceReduction reduction(dx_BTD, tensor);
    at::Tensor dx;
    if (!tensor.overlap) dx = reduction.wait();
    gradients.add(weights, std::move(d_outputs), gathered);
    if (tensor.overlap) dx = reduction.wait();
    if (tensor.faults.has(Fault::kTensorInputSumTwice)) dx = dx * tensor.size();
    return {dx, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  // What the weight gradients multiply: gathered while the caller goes on, or, where they are put
  // off, when they are due, so that only the part stays alive until then.
  static WeightGradients::InputSource gather_again(const WeightGradients::InputSource& part,
                                                   const TensorParallel& tensor,
                                                   const WeightGradients& gradients) {
    if (gradients.is_deferring())
      return [part, &tensor] { return rows_of(SequenceGather(part(), tensor).wait()); };
    const auto gather = std::make_shared<SequenceGather>(part(), tensor);
    if (tensor.overlap) return [gather] { return rows_of(gather->wait()); };
    const at::Tensor whole = rows_of(gather->wait());
    return [whole] { return whole; };
  }
};

struct ScatteringRowFunction : torch::autograd::Function<ScatteringRowFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t num_samples,
                            const std::vector<Parameter*>* weight, WeightGradients* gradients,
                            const TensorParallel* tensor,
                            const WeightGradients::InputSource* again) {
    internal::keep_input(context, x, *again);
    internal::save_pointer(context, "weight", *weight);
    internal::save_pointer(context, "gradients", *gradients);
    internal::save_pointer(context, "tensor", *tensor);
    const at::Tensor partial_ND = linear_output(x, *weight->front());
    return scattered_sum(partial_ND.view({num_samples, -1, partial_ND.size(1)}), *tensor);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& weight = internal::saved_pointer<const std::vector<Parameter*>>(context, "weight");
    auto& gradients = internal::saved_pointer<WeightGradients>(context, "gradients");
    const auto& tensor = internal::saved_pointer<const TensorParallel>(context, "tensor");
    const at::Tensor part = d_outputs[0].detach();
    const at::Tensor dy = rows_of(SequenceGather(part, tensor).wait());
    const at::Tensor dx = linear_input_gradient({dy}, weight);
    gradients.add(weight, {dy}, internal::kept_input(context, gradients));
    return {dx, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

struct ReduceScatterFunction : torch::autograd::Function<ReduceScatterFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const TensorParallel* tensor) {
    internal::save_pointer(context, "tensor", *tensor);
    return scattered_sum(x, *tensor);
  }
  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& tensor = internal::saved_pointer<const TensorParallel>(context, "tensor");
    return {SequenceGather(d_outputs[0], tensor).wait(), at::Tensor()};
  }
};

}  // namespace

std::vector<at::Tensor> gathering_column_linear(const at::Tensor& x,
                                                const std::vector<Parameter*>& weights,
                                                WeightGradients& gradients,
                                                const TensorParallel& tensor,
                                                const WeightGradients::InputSource& again) {
  return GatheringColumnFunction::apply(x, &weights, &gradients, &tensor, &again);
}

at::Tensor scattering_row_linear(const at::Tensor& x, int64_t num_samples,
                                 const std::vector<Parameter*>& weight, WeightGradients& gradients,
                                 const TensorParallel& tensor,
                                 const WeightGradients::InputSource& again) {
  return ScatteringRowFunction::apply(x, num_samples, &weight, &gradients, &tensor, &again);
}

at::Tensor reduce_scatter_to_sp(const at::Tensor& x, const TensorParallel& tensor) {
  return ReduceScatterFunction::apply(x, &tensor);
}

}  // namespace sevenfold

#include "sevenfold/nn/linear.h"

#include "sevenfold/nn/internal/autograd.h"
#include "sevenfold/nn/internal/products.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Parameter* weight,
                            WeightGradients* gradients) {
    context->save_for_backward({x});
    internal::save_pointer(context, "weight", *weight);
    internal::save_pointer(context, "gradients", *gradients);
    return internal::product(x, weight->weight().t());
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& weight = internal::saved_pointer<const Parameter>(context, "weight");
    auto& gradients = internal::saved_pointer<WeightGradients>(context, "gradients");
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor dy = d_outputs[0].contiguous();
    gradients.add(weight, dy, x);
    return {internal::product(dy, weight.weight()), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const Parameter& weight, WeightGradients& gradients) {
  return LinearFunction::apply(x, &weight, &gradients);
}

}  // namespace sevenfold

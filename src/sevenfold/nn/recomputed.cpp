#include "sevenfold/nn/recomputed.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "sevenfold/nn/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct RecomputedFunction : torch::autograd::Function<RecomputedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const Operation* operation) {
    context->save_for_backward({x});
    internal::save_callable(context, "operation", *operation);
    return (*operation)(x);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& operation = internal::saved_callable<Operation>(context, "operation");
    at::Tensor x = context->get_saved_variables()[0].detach();
    x.set_requires_grad(true);
    const at::AutoGradMode with_graph(true);
    torch::autograd::backward({operation(x)}, {d_outputs[0]});
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recomputed(const at::Tensor& x, const Operation& operation) {
  return RecomputedFunction::apply(x, &operation);
}

}  // namespace sevenfold

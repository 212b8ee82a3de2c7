#include "sevenfold/nn/swiglu.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/internal/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& up) {
    context->save_for_backward({gate, up});
    return at::silu(gate).mul_(up);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], &dy = d_outputs[0];
    const at::Tensor sigmoid = at::sigmoid(gate);
    const at::Tensor silu = gate * sigmoid;
    // silu'(a) = s (1 + a (1 - s)) = s + silu (1 - s)
    const at::Tensor slope = sigmoid + silu * (1 - sigmoid);
    return {slope.mul_(dy).mul_(up), silu.mul_(dy)};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return SwigluFunction::apply(gate, up);
}

}  // namespace sevenfold

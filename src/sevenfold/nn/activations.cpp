#include "sevenfold/nn/activations.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/internal/autograd.h"
#include "sevenfold/nn/swiglu.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct GegluFunction : torch::autograd::Function<GegluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& up) {
    context->save_for_backward({gate, up});
    return at::gelu(gate).mul_(up);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], &dy = d_outputs[0];
    return {at::gelu_backward(dy * up, gate), at::gelu(gate).mul_(dy)};
  }
};

// GELU by the sigmoid: a * sigmoid(1.702 a).
constexpr double kQuickGeluSlope = 1.702;

struct QuickGegluFunction : torch::autograd::Function<QuickGegluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& up) {
    context->save_for_backward({gate, up});
    return at::sigmoid(gate * kQuickGeluSlope).mul_(gate).mul_(up);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], &dy = d_outputs[0];
    const at::Tensor sigmoid = at::sigmoid(gate * kQuickGeluSlope);
    const at::Tensor value = gate * sigmoid;
    const at::Tensor slope = sigmoid + value * (1 - sigmoid) * kQuickGeluSlope;
    return {slope.mul_(dy).mul_(up), value * dy};
  }
};

}  // namespace

at::Tensor activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kGelu:
      return at::gelu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kSquaredRelu:
      return at::relu(x).square();
    default:
      raise<InternalError>("a gated activation needs a gate");
  }
}

at::Tensor activate_gated(Activation activation, const at::Tensor& gate, const at::Tensor& up) {
  switch (activation) {
    case Activation::kSwiglu:
      return swiglu(gate, up);
    case Activation::kGeglu:
      return GegluFunction::apply(gate, up);
    case Activation::kQuickGeglu:
      return QuickGegluFunction::apply(gate, up);
    default:
      raise<InternalError>("this activation has no gate");
  }
}

}  // namespace sevenfold

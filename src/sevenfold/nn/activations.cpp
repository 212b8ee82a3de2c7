#include "sevenfold/nn/activations.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/swiglu.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

// The type of the arithmetic: results in bf16 and fp16 are rounded once.
at::Tensor wide(const at::Tensor& x) {
  return x.to(internal::wide_type(x.scalar_type()));
}

// GELU by the sigmoid: a * sigmoid(1.702 a).
constexpr double kQuickGeluSlope = 1.702;

struct QuickGegluFunction : torch::autograd::Function<QuickGegluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& up) {
    context->save_for_backward({gate, up});
    const at::Tensor a = wide(gate);
    return at::sigmoid(a * kQuickGeluSlope).mul_(a).mul_(up).to(gate.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], &dy = d_outputs[0];
    const at::Tensor a = wide(gate);
    const at::Tensor sigmoid = at::sigmoid(a * kQuickGeluSlope);
    const at::Tensor value = a * sigmoid;
    const at::Tensor slope = sigmoid + value * (1 - sigmoid) * kQuickGeluSlope;
    return {slope.mul_(dy).mul_(up).to(gate.scalar_type()), (value * dy).to(gate.scalar_type())};
  }
};

const char* gelu_form(Activation activation) {
  return activation == Activation::kGeluTanh ? "tanh" : "none";
}

struct UngatedFunction : torch::autograd::Function<UngatedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Activation activation) {
    context->save_for_backward({x});
    context->saved_data["activation"] = static_cast<int64_t>(activation);
    const at::Tensor a = wide(x);
    const at::Tensor y = activation == Activation::kSquaredRelu
                             ? at::relu(a).square()
                             : at::gelu(a, gelu_form(activation));
    return y.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const at::Tensor x = context->get_saved_variables()[0];
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const at::Tensor a = wide(x), dy = wide(d_outputs[0]);
    const at::Tensor dx = activation == Activation::kSquaredRelu
                              ? at::relu(a).mul_(2).mul_(dy)
                              : at::gelu_backward(dy, a, gelu_form(activation));
    return {dx.to(x.scalar_type()), at::Tensor()};
  }
};

}  // namespace

at::Tensor activate(Activation activation, const at::Tensor& x) {
  if (is_gated(activation)) raise<InternalError>("nn: a gated activation needs a gate");
  return UngatedFunction::apply(x, activation);
}

at::Tensor activate_gated(Activation activation, const at::Tensor& gate, const at::Tensor& up) {
  switch (activation) {
    case Activation::kSwiglu:
      return swiglu(gate, up);
    case Activation::kQuickGeglu:
      return QuickGegluFunction::apply(gate, up);
    default:
      raise<InternalError>("nn: this activation has no gate");
  }
}

}  // namespace sevenfold

#include "sevenfold/nn/swiglu.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::variable_list;

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_input,
                            const at::Tensor& up_input) {
    const at::Tensor gate = gate_input.contiguous(), up = up_input.contiguous();
    const at::Tensor y = at::empty_like(gate);
    internal::with_element_type(gate.scalar_type(), [&]<typename T>(T) {
      kernels::swiglu_forward<T>(elements<T>(gate), elements<T>(up), elements<T>(y), y.numel());
    });
    context->save_for_backward({gate, up});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1];
    const at::Tensor dy = d_outputs[0].contiguous();
    const at::Tensor d_gate = at::empty_like(gate), d_up = at::empty_like(up);
    internal::with_element_type(gate.scalar_type(), [&]<typename T>(T) {
      kernels::swiglu_backward<T>(elements<T>(dy), elements<T>(gate), elements<T>(up),
                                  elements<T>(d_gate), elements<T>(d_up), dy.numel());
    });
    return {d_gate, d_up};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  SEVENFOLD_CHECK(gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type());
  return SwigluFunction::apply(gate, up);
}

}  // namespace sevenfold

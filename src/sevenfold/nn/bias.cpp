#include "sevenfold/nn/bias.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct AddBiasFunction : torch::autograd::Function<AddBiasFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Parameter* bias,
                            FaultSet faults) {
    internal::save_pointer(context, "bias", *bias);
    context->saved_data["dropped"] = faults.has(Fault::kBiasGradientDropped);
    return x + bias->weight();
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& bias = internal::saved_pointer<const Parameter>(context, "bias");
    if (!context->saved_data["dropped"].toBool())
      bias.gradient().add_(d_outputs[0].sum(0, false, bias.gradient().scalar_type()));
    return {d_outputs[0], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor add_bias(const at::Tensor& x, const Parameter& bias, FaultSet faults) {
  return AddBiasFunction::apply(x, &bias, faults);
}

}  // namespace sevenfold

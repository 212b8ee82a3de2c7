#include "sevenfold/nn/layer_norm.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/internal/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const Parameter* gain, const Parameter* bias, double eps) {
    const at::Tensor x = input.contiguous();
    const auto [y, mean, rstd] =
        at::native_layer_norm(x, {x.size(-1)}, gain->weight(), bias->weight(), eps);
    context->save_for_backward({x, mean, rstd});
    internal::save_pointer(context, "gain", *gain);
    internal::save_pointer(context, "bias", *bias);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& gain = internal::saved_pointer<const Parameter>(context, "gain");
    const auto& bias = internal::saved_pointer<const Parameter>(context, "bias");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const auto [dx, d_gain, d_bias] =
        at::native_layer_norm_backward(d_outputs[0].contiguous(), x, {x.size(-1)}, saved[1],
                                       saved[2], gain.weight(), bias.weight(), {true, true, true});
    gain.gradient().add_(d_gain);
    bias.gradient().add_(d_bias);
    return {dx, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const Parameter& gain, const Parameter& bias,
                      double eps) {
  return LayerNormFunction::apply(x, &gain, &bias, eps);
}

}  // namespace sevenfold

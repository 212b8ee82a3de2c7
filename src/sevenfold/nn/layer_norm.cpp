#include "sevenfold/nn/layer_norm.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::variable_list;

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const Parameter* gain, const Parameter* bias, double eps) {
    const at::Tensor x = input.contiguous();
    const int64_t dim = x.size(-1);
    const int64_t rows = x.numel() / dim;
    const at::Tensor y = at::empty_like(x);
    const at::TensorOptions wide = x.options().dtype(internal::wide_type(x.scalar_type()));
    const at::Tensor mean = at::empty({rows}, wide), rstd = at::empty({rows}, wide);
    internal::with_element_type(x.scalar_type(), [&]<typename T>(T) {
      kernels::layer_norm_forward<T>(
          elements<T>(x), elements<T>(gain->weight()), elements<T>(bias->weight()), elements<T>(y),
          elements<Wide<T>>(mean), elements<Wide<T>>(rstd), rows, dim, eps);
    });
    context->save_for_backward({x, mean, rstd});
    internal::save_pointer(context, "gain", *gain);
    internal::save_pointer(context, "bias", *bias);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& gain = internal::saved_pointer<const Parameter>(context, "gain");
    const auto& bias = internal::saved_pointer<const Parameter>(context, "bias");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &mean = saved[1], &rstd = saved[2];
    const at::Tensor dy = d_outputs[0].contiguous();
    const at::Tensor dx = at::empty_like(x);
    const int64_t dim = x.size(-1);
    internal::with_element_type(x.scalar_type(), [&]<typename T>(T) {
      using A = Wide<T>;
      kernels::layer_norm_backward<T>(elements<T>(dy), elements<T>(x), elements<T>(gain.weight()),
                                      elements<A>(mean), elements<A>(rstd), elements<T>(dx),
                                      elements<A>(gain.gradient()), elements<A>(bias.gradient()),
                                      x.numel() / dim, dim);
    });
    return {dx, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const Parameter& gain, const Parameter& bias,
                      double eps) {
  return LayerNormFunction::apply(x, &gain, &bias, eps);
}

}  // namespace sevenfold

#include "sevenfold/nn/rms_norm.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::variable_list;

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const Parameter* gain, double eps) {
    const at::Tensor x = input.contiguous();
    const int64_t dim = x.size(-1);
    const int64_t rows = x.numel() / dim;
    const at::Tensor y = at::empty_like(x);
    const at::Tensor rstd =
        at::empty({rows}, x.options().dtype(internal::wide_type(x.scalar_type())));
    internal::with_element_type(x.scalar_type(), [&]<typename T>(T) {
      kernels::rms_norm_forward<T>(elements<T>(x), elements<T>(gain->weight()), elements<T>(y),
                                   elements<Wide<T>>(rstd), rows, dim, eps);
    });
    context->save_for_backward({x, rstd});
    internal::save_pointer(context, "gain", *gain);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& gain = internal::saved_pointer<const Parameter>(context, "gain");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor dy = d_outputs[0].contiguous();
    const at::Tensor dx = at::empty_like(x);
    const int64_t dim = x.size(-1);
    internal::with_element_type(x.scalar_type(), [&]<typename T>(T) {
      kernels::rms_norm_backward<T>(elements<T>(dy), elements<T>(x), elements<T>(gain.weight()),
                                    elements<Wide<T>>(saved[1]), elements<T>(dx),
                                    elements<Wide<T>>(gain.gradient()), x.numel() / dim, dim);
    });
    return {dx, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const Parameter& gain, double eps) {
  return RmsNormFunction::apply(x, &gain, eps);
}

}  // namespace sevenfold

#include "sevenfold/nn/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include "sevenfold/nn/internal/autograd.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const Parameter* gain, double eps) {
    const at::Tensor x = input.contiguous();
    const int64_t dim = x.size(-1);
    const int64_t rows = x.numel() / dim;
    const at::Tensor y = at::empty_like(x);
    const at::Tensor rstd = at::empty({rows}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm_forward", [&] {
      kernels::rms_norm_forward<scalar_t>(
          x.data_ptr<scalar_t>(), gain->weight().data_ptr<scalar_t>(), y.data_ptr<scalar_t>(),
          rstd.data_ptr<scalar_t>(), rows, dim, eps);
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
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm_backward", [&] {
      kernels::rms_norm_backward<scalar_t>(
          dy.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), gain.weight().data_ptr<scalar_t>(),
          saved[1].data_ptr<scalar_t>(), dx.data_ptr<scalar_t>(),
          gain.gradient().data_ptr<scalar_t>(), x.numel() / dim, dim);
    });
    return {dx, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const Parameter& gain, double eps) {
  return RmsNormFunction::apply(x, &gain, eps);
}

}  // namespace sevenfold

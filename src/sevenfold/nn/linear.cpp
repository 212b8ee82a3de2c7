#include "sevenfold/nn/linear.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/internal/products.h"

namespace sevenfold {

at::Tensor linear_output(const at::Tensor& x, const Parameter& weight) {
  return internal::product(x, weight.weight().t());
}

at::Tensor linear_input_gradient(const std::vector<at::Tensor>& d_outputs,
                                 const std::vector<Parameter*>& weights) {
  SEVENFOLD_CHECK(!weights.empty() && weights.size() == d_outputs.size(), "{} gradients, {} layers",
                  d_outputs.size(), weights.size());
  const at::ScalarType type = d_outputs[0].scalar_type(), wide = internal::wide_type(type);
  const bool is_first_kept = weights.size() == 1 || wide == type;
  const at::Tensor sum = is_first_kept
                             ? internal::product(d_outputs[0], weights[0]->weight())
                             : at::zeros({d_outputs[0].size(0), weights[0]->weight().size(1)},
                                         d_outputs[0].options().dtype(wide));
  for (size_t i = is_first_kept ? 1 : 0; i < weights.size(); ++i)
    internal::add_product(sum, d_outputs[i], weights[i]->weight());
  return sum.to(type);
}

}  // namespace sevenfold

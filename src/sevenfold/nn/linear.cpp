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
  const at::Tensor first = internal::product(d_outputs[0], weights[0]->weight());
  if (weights.size() == 1) return first;
  const at::Tensor sum = first.to(internal::wide_type(first.scalar_type()));
  for (size_t i = 1; i < weights.size(); ++i)
    internal::add_product(sum, d_outputs[i], weights[i]->weight());
  return sum.to(first.scalar_type());
}

}  // namespace sevenfold

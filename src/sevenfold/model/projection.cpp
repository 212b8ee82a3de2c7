#include "sevenfold/model/projection.h"

#include "sevenfold/nn/bias.h"
#include "sevenfold/nn/linear.h"

namespace sevenfold {

at::Tensor Projection::operator()(const at::Tensor& x, WeightGradients& gradients) const {
  const at::Tensor y = linear(x, *weight, gradients);
  return bias ? add_bias(y, *bias, gradients.faults()) : y;
}

void Projection::list_parameters(std::vector<Parameter*>& list) const {
  list.push_back(weight);
  if (bias) list.push_back(bias);
}

}  // namespace sevenfold

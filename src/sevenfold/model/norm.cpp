#include "sevenfold/model/norm.h"

#include "sevenfold/nn/layer_norm.h"
#include "sevenfold/nn/rms_norm.h"

namespace sevenfold {

at::Tensor Norm::operator()(const at::Tensor& x) const {
  return bias ? layer_norm(x, *gain, *bias, epsilon) : rms_norm(x, *gain, epsilon);
}

void Norm::list_parameters(std::vector<Parameter*>& list) const {
  list.push_back(gain);
  if (bias) list.push_back(bias);
}

}  // namespace sevenfold

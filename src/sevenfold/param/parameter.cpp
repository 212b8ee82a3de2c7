#include "sevenfold/param/parameter.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"

namespace sevenfold {

bool Parameter::is_bound() const {
  return weight_.defined() && (gradient_.defined() || owned_gradient_.defined());
}

void Parameter::bind(at::Tensor weight, at::Tensor gradient) {
  weight_ = std::move(weight);
  gradient_ = std::move(gradient);
  owned_ = {0, weight_.numel()};
  owned_gradient_ = at::Tensor();
}

void Parameter::own(ElementRange range, at::Tensor gradient) {
  SEVENFOLD_CHECK(range.begin >= 0 && range.begin <= range.end && range.end <= weight_.numel(),
                  "{}: elements {} to {} of {}", name_, range.begin, range.end, weight_.numel());
  SEVENFOLD_CHECK_EQ(gradient.numel(), range.size());
  owned_ = range;
  owned_gradient_ = std::move(gradient);
}

at::Tensor Parameter::owned_weight() const {
  return weight_.view({-1}).narrow(0, owned_.begin, owned_.size());
}

at::Tensor Parameter::owned_gradient() const {
  return owned_gradient_.defined() ? owned_gradient_ : gradient_.view({-1});
}

}  // namespace sevenfold

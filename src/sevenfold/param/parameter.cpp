#include "sevenfold/param/parameter.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"

namespace sevenfold {

bool Parameter::is_bound() const {
  return (weight_.defined() || owned_weight_.defined()) &&
         (gradient_.defined() || owned_gradient_.defined());
}

const at::Tensor& Parameter::weight() const {
  SEVENFOLD_CHECK(weight_.defined(), "{} is read where its weights are not gathered", name_);
  return weight_;
}

void Parameter::bind(at::Tensor weight, at::Tensor gradient) {
  weight_ = std::move(weight);
  gradient_ = std::move(gradient);
  sizes_ = weight_.sizes().vec();
  num_elements_ = weight_.numel();
  weight_type_ = weight_.scalar_type();
  owned_ = {0, num_elements_};
  owned_weight_ = owned_gradient_ = at::Tensor();
}

void Parameter::own(ElementRange range, at::Tensor weight, at::Tensor gradient) {
  SEVENFOLD_CHECK(range.begin >= 0 && range.begin <= range.end && range.end <= num_elements_,
                  "{}: elements {} to {} of {}", name_, range.begin, range.end, num_elements_);
  SEVENFOLD_CHECK_EQ(weight.numel(), range.size());
  SEVENFOLD_CHECK_EQ(gradient.numel(), range.size());
  owned_ = range;
  owned_weight_ = std::move(weight);
  owned_gradient_ = std::move(gradient);
}

at::Tensor Parameter::owned_weight() const {
  return owned_weight_.defined() ? owned_weight_ : weight().view({-1});
}

at::Tensor Parameter::owned_gradient() const {
  return owned_gradient_.defined() ? owned_gradient_ : gradient_.view({-1});
}

}  // namespace sevenfold

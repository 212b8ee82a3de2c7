#include "sevenfold/nn/activations.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

double formula(Activation activation, double a, double up) {
  switch (activation) {
    case Activation::kSwiglu:
      return a / (1 + std::exp(-a)) * up;
    case Activation::kQuickGeglu:
      return a / (1 + std::exp(-1.702 * a)) * up;
    case Activation::kGelu:
      return 0.5 * a * (1 + std::erf(a / std::numbers::sqrt2));
    case Activation::kGeluTanh:
      return 0.5 * a *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (a + 0.044715 * a * a * a)));
    case Activation::kSquaredRelu:
      return a > 0 ? a * a : 0.0;
  }
  return NAN;
}

TEST(Activations, EqualTheirFormulas) {
  const at::Tensor a = at::arange(-6.0, 6.0, 0.37, at::TensorOptions(at::kDouble));
  const at::Tensor up = at::cos(a);
  for (const Activation activation :
       {Activation::kSwiglu, Activation::kQuickGeglu, Activation::kGelu, Activation::kGeluTanh,
        Activation::kSquaredRelu}) {
    const at::Tensor y =
        is_gated(activation) ? activate_gated(activation, a, up) : activate(activation, a);
    for (int64_t i = 0; i < a.numel(); ++i)
      EXPECT_NEAR(y[i].item<double>(),
                  formula(activation, a[i].item<double>(), up[i].item<double>()), 1e-13)
          << static_cast<int>(activation) << " at " << a[i].item<double>();
  }
}

TEST(Activations, RefuseTheOtherKind) {
  const at::Tensor a = at::ones({2}, at::TensorOptions(at::kDouble));
  EXPECT_THROW(activate(Activation::kQuickGeglu, a), InternalError);
  EXPECT_THROW(activate_gated(Activation::kGelu, a, a), InternalError);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/nn/bias.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "support/gradient_check.h"

namespace sevenfold {
namespace {

at::Tensor gradient_with(FaultSet faults) {
  const auto bias = testing::random_parameter("bias", {2});
  bias->gradient().fill_(1.0);
  const at::Tensor x = at::zeros({3, 2}, at::TensorOptions(at::kDouble)).set_requires_grad(true);
  const at::Tensor y = add_bias(x, *bias, faults);
  EXPECT_TRUE(at::equal(y[2], bias->weight()));
  torch::autograd::backward({y}, {at::tensor({1., 2., 3., 4., 5., 6.}, at::kDouble).view({3, 2})});
  return bias->gradient().clone();
}

TEST(Bias, IsAddedToEveryRowAndAddsItsGradientToWhatIsThere) {
  EXPECT_TRUE(at::equal(gradient_with({}), at::tensor({10.0, 13.0}, at::kDouble)));
}

#ifdef SEVENFOLD_FAULTS
TEST(Bias, LosesItsGradientByThePlantedFault) {
  EXPECT_TRUE(at::equal(gradient_with(FaultSet().enable(Fault::kBiasGradientDropped)),
                        at::tensor({1.0, 1.0}, at::kDouble)));
}
#endif

}  // namespace
}  // namespace sevenfold

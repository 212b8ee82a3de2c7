#include "sevenfold/nn/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

Dropout feed_forward_dropout(double rate) {
  return {.rate = rate,
          .site = {.seed = 17, .layer = 3, .operation = RandomOperation::kFeedForwardDropout}};
}

at::Tensor random_tensor(std::vector<int64_t> shape) {
  return at::randn(shape, at::TensorOptions(at::kDouble));
}

// The mask as plain loops over the random stream make it.
at::Tensor plain_mask(const Dropout& dropout, const std::vector<int64_t>& samples, int64_t length,
                      int64_t columns) {
  const at::Tensor mask = at::zeros({static_cast<int64_t>(samples.size()), length, columns},
                                    at::TensorOptions(at::kDouble));
  auto* value = mask.data_ptr<double>();
  const RandomStream stream(dropout.site);
  for (const int64_t sample : samples)
    for (int64_t position = 0; position < length; ++position)
      for (int64_t column = 0; column < columns; ++column) {
        std::vector<uint32_t> number(1);
        stream.draw(sample, position, column, number);
        *value++ = number[0] * 0x1p-32 < dropout.rate ? 0.0 : 1.0 / (1.0 - dropout.rate);
      }
  return mask;
}

TEST(Dropout, MultipliesByTheMaskInBothDirections) {
  at::manual_seed(1);
  const std::vector<int64_t> samples = {8, 2, 30};
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Dropout site = feed_forward_dropout(rate);
    const at::Tensor mask = plain_mask(site, samples, 5, 301);
    const at::Tensor x = random_tensor({3, 5, 301}).set_requires_grad(true);
    const at::Tensor y = dropout(x, site, samples);
    EXPECT_TRUE(at::equal(y, x * mask));
    const at::Tensor dy = random_tensor({3, 5, 301});
    torch::autograd::backward({y}, {dy});
    EXPECT_TRUE(at::equal(x.grad(), dy * mask));
  }
}

TEST(Dropout, OfASliceOfTokensAndColumnsIsTheSliceOfTheWhole) {
  const Dropout site = feed_forward_dropout(0.25);
  const at::Tensor x = random_tensor({2, 8, 12});
  const at::Tensor whole = dropout(x, site, {4, 5});
  const at::Tensor part = dropout(x.narrow(0, 1, 1).narrow(1, 3, 4).narrow(2, 5, 6), site, {5},
                                  {.position = 3, .column = 5});
  EXPECT_TRUE(at::equal(part, whole.narrow(0, 1, 1).narrow(1, 3, 4).narrow(2, 5, 6)));
}

TEST(Dropout, DropsTheShareThatItsRateSaysAndKeepsTheMean) {
  for (const double rate : {0.1, 0.3}) {
    const at::Tensor y = dropout(at::ones({4, 50, 100}, at::TensorOptions(at::kFloat)),
                                 feed_forward_dropout(rate), {0, 1, 2, 3});
    // Five standard deviations of 20,000 draws.
    const double bound = 5 * std::sqrt(rate * (1 - rate) / 20'000);
    EXPECT_NEAR(y.eq(0).to(at::kDouble).mean().item<double>(), rate, bound);
    EXPECT_NEAR(y.mean(at::kDouble).item<double>(), 1.0, bound / (1 - rate));
  }
}

TEST(Dropout, OfRateZeroChangesNothing) {
  const at::Tensor x = random_tensor({1, 3, 7});
  EXPECT_TRUE(at::equal(dropout(x, feed_forward_dropout(0.0), {11}), x));
}

TEST(Dropout, NeedsASampleForEveryRow) {
  const at::Tensor x = random_tensor({2, 3, 7});
  EXPECT_THROW(dropout(x, feed_forward_dropout(0.1), {11}), InternalError);
}

#ifdef SEVENFOLD_FAULTS
TEST(Dropout, RedrawnInBackwardByThePlantedFaultGivesAnotherGradient) {
  Dropout site = feed_forward_dropout(0.5);
  site.faults.enable(Fault::kDropoutRedrawn);
  const at::Tensor x = at::ones({1, 4, 64}, at::TensorOptions(at::kDouble)).set_requires_grad(true);
  const at::Tensor y = dropout(x, site, {0});
  torch::autograd::backward({y}, {at::ones_like(y)});
  EXPECT_FALSE(at::equal(x.grad(), y));
}
#endif

}  // namespace
}  // namespace sevenfold

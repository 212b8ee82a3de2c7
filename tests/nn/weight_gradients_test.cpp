#include "sevenfold/nn/weight_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/linear.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

// Gradient of the weight after two micro batches of `linear`, each seeded with ones.
at::Tensor gradient_after_two(BackwardPart part, bool run_second_first) {
  at::manual_seed(11);
  const auto weight = testing::random_parameter("weight", {3, 4});
  WeightGradients gradients;
  for (const int64_t microbatch : {0, 1}) {
    const at::Tensor x = at::randn({5, 4}, at::kDouble).set_requires_grad(true);
    const at::Tensor y = linear(x, *weight, gradients);
    gradients.begin(microbatch, part);
    torch::autograd::backward({y}, {at::ones_like(y)});
    EXPECT_EQ(gradients.empty(), part == BackwardPart::kFull);
  }
  if (part == BackwardPart::kInputOnly) {
    EXPECT_EQ(weight->gradient().abs().max().item<double>(), 0.0)
        << "added before the schedule said W";
    gradients.run(run_second_first ? 1 : 0);
    gradients.run(run_second_first ? 0 : 1);
  }
  EXPECT_TRUE(gradients.empty());
  return weight->gradient().clone();
}

TEST(WeightGradients, QueuedAndAtOnceAreTheSameBits) {
  const at::Tensor at_once = gradient_after_two(BackwardPart::kFull, false);
  EXPECT_TRUE(at::equal(at_once, gradient_after_two(BackwardPart::kInputOnly, false)));
  EXPECT_TRUE(
      at::allclose(at_once, gradient_after_two(BackwardPart::kInputOnly, true), 1e-14, 1e-14));
}

TEST(WeightGradients, RefuseAMicrobatchThatQueuedNothing) {
  WeightGradients gradients;
  EXPECT_THROW(gradients.run(0), InternalError);
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/nn/weight_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

// Gradient of the weight after the backward passes of two micro batches.
at::Tensor gradient_after_two(BackwardPart part, bool run_second_first) {
  at::manual_seed(11);
  const auto weight = testing::random_parameter("weight", {3, 4});
  WeightGradients gradients;
  for (const int64_t microbatch : {0, 1}) {
    const at::Tensor x = at::randn({5, 4}, at::kDouble), dy = at::randn({5, 3}, at::kDouble);
    gradients.begin(microbatch, part);
    gradients.add({weight.get()}, {dy}, [x] { return x; });
    EXPECT_EQ(gradients.empty(), part == BackwardPart::kFull);
  }
  if (part == BackwardPart::kInputOnly) {
    EXPECT_EQ(weight->gradient().abs().max().item<double>(), 0.0)
        << "added before the schedule said W";
    for (const int64_t microbatch : {run_second_first ? 1 : 0, run_second_first ? 0 : 1}) {
      gradients.run(microbatch, 0);
      EXPECT_FALSE(gradients.empty());
      gradients.end(microbatch);
    }
  }
  EXPECT_TRUE(gradients.empty());
  return weight->gradient().clone();
}

TEST(WeightGradients, AreProductsWithTheInputOfEachLayerThatReadsIt) {
  at::manual_seed(12);
  const auto low = testing::random_parameter("low", {3, 4});
  const auto high = testing::random_parameter("high", {2, 4});
  const at::Tensor x = at::randn({5, 4}, at::kDouble);
  const at::Tensor d_low = at::randn({5, 3}, at::kDouble), d_high = at::randn({5, 2}, at::kDouble);
  int64_t asked = 0;
  WeightGradients gradients;
  gradients.add({low.get(), high.get()}, {d_low, d_high}, [&] {
    ++asked;
    return x;
  });
  EXPECT_EQ(asked, 1) << "an input that is gathered is gathered once";
  EXPECT_TRUE(at::allclose(low->gradient(), at::mm(d_low.t(), x), 1e-14, 1e-14));
  EXPECT_TRUE(at::allclose(high->gradient(), at::mm(d_high.t(), x), 1e-14, 1e-14));
}

TEST(WeightGradients, QueuedAndAtOnceAreTheSameBits) {
  const at::Tensor at_once = gradient_after_two(BackwardPart::kFull, false);
  EXPECT_TRUE(at::equal(at_once, gradient_after_two(BackwardPart::kInputOnly, false)));
  EXPECT_TRUE(
      at::allclose(at_once, gradient_after_two(BackwardPart::kInputOnly, true), 1e-14, 1e-14));
}

TEST(WeightGradients, RefuseAMicrobatchThatQueuedNothing) {
  WeightGradients gradients;
  EXPECT_THROW(gradients.run(0, 0), InternalError);
}

}  // namespace
}  // namespace sevenfold

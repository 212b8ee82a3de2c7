#include "sevenfold/nn/position_embedding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

TEST(PositionEmbedding, AddsTheRowOfEachPosition) {
  const auto table = testing::random_parameter("positions", {5, 3});
  const at::Tensor x = at::zeros({2, 4, 3}, at::TensorOptions(at::kDouble));
  const at::Tensor plain = add_position_embedding(x, *table, {});
  const at::Tensor positions = at::tensor({0, 1, 0, 1, 4, 0, 3, 2}, at::kLong).view({2, 4});
  const at::Tensor reset = add_position_embedding(x, *table, positions);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 4; ++t) {
      EXPECT_TRUE(at::equal(plain[b][t], table->weight()[t]));
      EXPECT_TRUE(at::equal(reset[b][t], table->weight()[positions[b][t].item<int64_t>()]));
    }
}

TEST(PositionEmbedding, RefusesASequenceLongerThanItsTable) {
  const auto table = testing::random_parameter("positions", {3, 2});
  const at::Tensor x = at::zeros({1, 4, 2}, at::TensorOptions(at::kDouble));
  EXPECT_THROW(add_position_embedding(x, *table, {}), InternalError);
}

}  // namespace
}  // namespace sevenfold

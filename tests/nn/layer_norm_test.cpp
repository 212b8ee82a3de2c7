#include "sevenfold/nn/layer_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradient_check.h"

namespace sevenfold {
namespace {

TEST(LayerNorm, EqualsThePlainFormula) {
  at::manual_seed(2);
  constexpr int64_t kDim = 13;
  const auto gain = testing::random_parameter("gain", {kDim});
  const auto bias = testing::random_parameter("bias", {kDim});
  const at::Tensor x = at::randn({2, 3, kDim}, at::TensorOptions(at::kDouble)).add_(5.0);
  const at::Tensor y = layer_norm(x, *gain, *bias, 1e-3);
  for (int64_t row = 0; row < 6; ++row) {
    const double* in = x.data_ptr<double>() + row * kDim;
    const double* out = y.data_ptr<double>() + row * kDim;
    double mean = 0.0, variance = 0.0;
    for (int64_t i = 0; i < kDim; ++i) mean += in[i] / kDim;
    for (int64_t i = 0; i < kDim; ++i) variance += (in[i] - mean) * (in[i] - mean) / kDim;
    for (int64_t i = 0; i < kDim; ++i)
      EXPECT_NEAR(out[i],
                  (in[i] - mean) / std::sqrt(variance + 1e-3) * gain->weight()[i].item<double>() +
                      bias->weight()[i].item<double>(),
                  1e-13);
  }
}

}  // namespace
}  // namespace sevenfold

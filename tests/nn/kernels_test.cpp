#include "sevenfold/nn/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sevenfold::kernels {
namespace {

TEST(RmsNormKernel, EqualsThePlainFormula) {
  constexpr int64_t kRows = 3, kDim = 13;
  std::vector<double> x(kRows * kDim), gain(kDim), y(x.size()), rstd(kRows);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.0 + static_cast<double>(i));
  for (size_t i = 0; i < gain.size(); ++i) gain[i] = 1.0 + 0.1 * static_cast<double>(i);
  rms_norm_forward(x.data(), gain.data(), y.data(), rstd.data(), kRows, kDim, 1e-5);
  for (int64_t row = 0; row < kRows; ++row) {
    double square = 0.0;
    for (int64_t i = 0; i < kDim; ++i) square += x[row * kDim + i] * x[row * kDim + i];
    const double scale = 1.0 / std::sqrt(square / kDim + 1e-5);
    EXPECT_NEAR(rstd[row], scale, 1e-15);
    for (int64_t i = 0; i < kDim; ++i)
      EXPECT_NEAR(y[row * kDim + i], x[row * kDim + i] * scale * gain[i], 1e-14);
  }
}

TEST(RmsNormKernel, GivesARowTheSameBitsWhereverItStands) {
  constexpr int64_t kDim = 37;
  std::vector<float> x(2 * kDim), gain(kDim, 1.5F), y(x.size()), rstd(2);
  for (int64_t i = 0; i < kDim; ++i) x[i] = x[i + kDim] = std::cos(static_cast<float>(i));
  rms_norm_forward(x.data(), gain.data(), y.data(), rstd.data(), 2, kDim, 1e-6);
  for (int64_t i = 0; i < kDim; ++i) EXPECT_EQ(y[i], y[i + kDim]);
}

TEST(RotateKernel, TurnsHalfSplitPairsByTheAngleOfTheirPosition) {
  // One head of 4 components, position 1, angles 0.3 and 0.7: pairs (0, 2) and (1, 3).
  const std::vector<double> cos = {1.0, 1.0, std::cos(0.3), std::cos(0.7)};
  const std::vector<double> sin = {0.0, 0.0, std::sin(0.3), std::sin(0.7)};
  const std::vector<double> x = {1, 2, 3, 4, 1, 2, 3, 4};
  std::vector<double> y(8), back(8);
  rotate<double>(x.data(), cos.data(), sin.data(), y.data(), 1, 2, 1, 4, 4, 1.0);
  EXPECT_EQ(std::vector<double>(y.begin(), y.begin() + 4), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_NEAR(y[4], std::cos(0.3) - 3 * std::sin(0.3), 1e-15);
  EXPECT_NEAR(y[6], 3 * std::cos(0.3) + std::sin(0.3), 1e-15);
  EXPECT_NEAR(y[5], 2 * std::cos(0.7) - 4 * std::sin(0.7), 1e-15);
  EXPECT_NEAR(y[7], 4 * std::cos(0.7) + 2 * std::sin(0.7), 1e-15);
  rotate<double>(y.data(), cos.data(), sin.data(), back.data(), 1, 2, 1, 4, 4, -1.0);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(back[i], x[i], 1e-15);
}

}  // namespace
}  // namespace sevenfold::kernels

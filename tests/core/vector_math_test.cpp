#include "sevenfold/core/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sevenfold/core/instruction_set.h"

namespace sevenfold {
namespace {

template <typename A>
std::vector<A> exponentials(const std::vector<A>& x, InstructionSet set) {
  const ForcedInstructionSet forced(set);
  std::vector<A> y(x.size());
  const A* __restrict in = x.data();
  A* __restrict out = y.data();
  const auto count = static_cast<int64_t>(x.size());
  run_vectorized([=]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) out[i] = exponential(in[i]);
  });
  return y;
}

template <typename A>
std::vector<A> arguments(A lowest, A highest) {
  std::vector<A> x;
  constexpr int64_t kCount = 200'001;
  for (int64_t i = 0; i < kCount; ++i)
    x.push_back(lowest + (highest - lowest) * static_cast<A>(i) / static_cast<A>(kCount - 1));
  return x;
}

// Largest error in units in the last place of the true value (of the smallest normal number, below
// it).
template <typename A>
double largest_error(A lowest, A highest) {
  const std::vector<A> x = arguments(lowest, highest);
  const std::vector<A> y = exponentials(x, InstructionSet::kAvx512);
  long double largest = 0.0L;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    const int exponent = std::max(std::ilogb(exact), std::numeric_limits<A>::min_exponent - 1);
    const long double unit = std::ldexp(1.0L, exponent + 1 - std::numeric_limits<A>::digits);
    largest = std::max(largest, std::abs(static_cast<long double>(y[i]) - exact) / unit);
  }
  return static_cast<double>(largest);
}

TEST(Exponential, IsWithinOneAndAHalfUnitsInTheLastPlace) {
  EXPECT_LT(largest_error<float>(-103.0F, 88.7F), 1.5);
  EXPECT_LT(largest_error<float>(-2.0F, 2.0F), 1.5);
  EXPECT_LT(largest_error<double>(-745.0, 709.7), 1.5);
  EXPECT_LT(largest_error<double>(-2.0, 2.0), 1.5);
}

template <typename A>
void expect_ends() {
  constexpr A kInfinity = std::numeric_limits<A>::infinity();
  const std::vector<A> y = exponentials<A>(
      {-kInfinity, A(-1e4), A(0), A(1e4), kInfinity, std::numeric_limits<A>::quiet_NaN()},
      InstructionSet::kPortable);
  EXPECT_EQ(y[0], A(0));
  EXPECT_EQ(y[1], A(0));
  EXPECT_EQ(y[2], A(1));
  EXPECT_EQ(y[3], kInfinity);
  EXPECT_EQ(y[4], kInfinity);
  EXPECT_TRUE(std::isnan(y[5]));
}

TEST(Exponential, UnderflowsToZeroOverflowsToInfinityAndKeepsNan) {
  expect_ends<float>();
  expect_ends<double>();
}

TEST(Exponential, HasTheSameBitsFromEveryInstructionSet) {
  const std::vector<float> x = arguments<float>(-110.0F, 95.0F);
  const std::vector<double> z = arguments<double>(-750.0, 715.0);
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    EXPECT_EQ(exponentials(x, set), exponentials(x, InstructionSet::kPortable));
    EXPECT_EQ(exponentials(z, set), exponentials(z, InstructionSet::kPortable));
  }
}

TEST(LaneSum, AddsEveryTermOnce) {
  for (const int64_t count : {0, 1, 31, 32, 33, 1000}) {
    const auto term = [](int64_t i) { return static_cast<double>(i + 1); };
    EXPECT_EQ(lane_sum<double>(count, term), static_cast<double>(count * (count + 1) / 2));
    EXPECT_EQ(lane_max<double>(count, -1.0, term), count == 0 ? -1.0 : static_cast<double>(count));
  }
}

TEST(ForcedInstructionSet, HoldsForItsScopeAndNeverExceedsTheProcessor) {
  const InstructionSet own = instruction_set();
  {
    const ForcedInstructionSet forced(InstructionSet::kPortable);
    EXPECT_EQ(instruction_set(), InstructionSet::kPortable);
  }
  {
    const ForcedInstructionSet forced(InstructionSet::kAvx512);
    EXPECT_EQ(instruction_set(), own);
  }
}

}  // namespace
}  // namespace sevenfold

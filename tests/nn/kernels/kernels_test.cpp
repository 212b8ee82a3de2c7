// Each loop against the plain formula in fp64, on the values as they are stored; every version of
// it gives the same bits.

#include "sevenfold/nn/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "nn/kernels/arrays.h"
#include "sevenfold/nn/kernels/softmax.h"
#include "support/tolerance.h"

namespace sevenfold::kernels {
namespace {

using sevenfold::testing::elementwise_tolerance;
using sevenfold::testing::smallest_normal;
using sevenfold::testing::summed_tolerance;
using sevenfold::testing::unit_roundoff;
using testing::Array;
using testing::kInstructionSets;
using testing::kOddSizes;
using testing::wave;

// What a version computes, as a list of arrays to compare.
template <typename Run>
void expect_same_bits_from_all_versions(const Run& run) {
  const auto compute = [&](InstructionSet set) {
    const ForcedInstructionSet forced(set);
    return run();
  };
  const auto expected = compute(InstructionSet::kPortable);
  for (const InstructionSet set : kInstructionSets)
    std::apply(
        [&](const auto&... actual) {
          std::apply([&](const auto&... wanted) { EXPECT_TRUE((actual.same_bits(wanted) && ...)); },
                     expected);
        },
        compute(set));
}

template <typename T>
class Kernels : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(Kernels, ElementTypes);

constexpr int64_t kRows = 5;

template <typename T>
auto rms_norm(int64_t dim) {
  const Array<T> x(kRows * dim, 0.1), gain(dim, 0.2), dy(kRows * dim, 0.3);
  Array<T> y(kRows * dim), dx(kRows * dim);
  Array<Wide<T>> rstd(kRows), d_gain(dim, 0.4);
  rms_norm_forward<T>(x.data(), gain.data(), y.data(), rstd.data(), kRows, dim, 1e-5);
  rms_norm_backward<T>(dy.data(), x.data(), gain.data(), rstd.data(), dx.data(), d_gain.data(),
                       kRows, dim);
  return std::tuple(y, rstd, dx, d_gain);
}

TYPED_TEST(Kernels, RmsNormEqualsThePlainFormulas) {
  using T = TypeParam;
  for (const int64_t dim : kOddSizes) {
    const auto [y, rstd, dx, d_gain] = rms_norm<T>(dim);
    const Array<T> x(kRows * dim, 0.1), gain(dim, 0.2), dy(kRows * dim, 0.3);
    const Array<Wide<T>> d_gain_before(dim, 0.4);
    std::vector<double> gain_sum(static_cast<size_t>(dim)), gain_scale(static_cast<size_t>(dim));
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t base = row * dim;
      double square = 0.0, dot = 0.0, dot_scale = 0.0;
      for (int64_t i = 0; i < dim; ++i) {
        square += x[base + i] * x[base + i];
        const double term = dy[base + i] * gain[i] * x[base + i];
        dot += term;
        dot_scale += std::abs(term);
      }
      const double scale = 1.0 / std::sqrt(square / static_cast<double>(dim) + 1e-5);
      EXPECT_NEAR(rstd[row], scale, scale * summed_tolerance<Wide<T>>());
      const double shared = scale * scale / static_cast<double>(dim);
      for (int64_t i = 0; i < dim; ++i) {
        const double value = x[base + i];
        EXPECT_NEAR(
            y[base + i], value * scale * gain[i],
            summed_tolerance<T>() * std::abs(value * scale * gain[i]) + smallest_normal<T>());
        const double direct = dy[base + i] * gain[i];
        const double expected = scale * (direct - value * dot * shared);
        const double terms = scale * (std::abs(direct) + std::abs(value) * dot_scale * shared);
        EXPECT_NEAR(dx[base + i], expected,
                    unit_roundoff<T>() * std::abs(expected) + smallest_normal<T>() +
                        terms * summed_tolerance<Wide<T>>());
        gain_sum[static_cast<size_t>(i)] += dy[base + i] * value * scale;
        gain_scale[static_cast<size_t>(i)] += std::abs(dy[base + i] * value * scale);
      }
    }
    for (int64_t i = 0; i < dim; ++i)
      EXPECT_NEAR(d_gain[i], d_gain_before[i] + gain_sum[static_cast<size_t>(i)],
                  (std::abs(d_gain_before[i]) + gain_scale[static_cast<size_t>(i)]) *
                      summed_tolerance<Wide<T>>());
  }
}

TYPED_TEST(Kernels, RmsNormHasOneResultOnEveryProcessor) {
  for (const int64_t dim : kOddSizes)
    expect_same_bits_from_all_versions([&] { return rms_norm<TypeParam>(dim); });
}

TYPED_TEST(Kernels, RmsNormGivesARowTheSameBitsWhereverItStands) {
  using T = TypeParam;
  constexpr int64_t kDim = 37;
  Array<T> x(2 * kDim), y(2 * kDim);
  const Array<T> gain(kDim, 0.2);
  Array<Wide<T>> rstd(2);
  for (int64_t i = 0; i < kDim; ++i) {
    x.set(i, wave(i, 0.5));
    x.set(i + kDim, wave(i, 0.5));
  }
  rms_norm_forward<T>(x.data(), gain.data(), y.data(), rstd.data(), 2, kDim, 1e-6);
  for (int64_t i = 0; i < kDim; ++i) EXPECT_EQ(y[i], y[i + kDim]);
}

// kBatch samples of kLength tokens with kHeads heads of `size` components, all but the last rotated
// where size is odd.
constexpr int64_t kBatch = 2, kLength = 3, kHeads = 2;

template <typename T>
auto rotated(int64_t size, int direction) {
  const int64_t rotary = size - size % 2;
  const Array<T> x(kBatch * kLength * kHeads * size, 0.6);
  Array<T> y(x.size());
  Array<Wide<T>> cos(kLength * rotary / 2), sin(kLength * rotary / 2);
  for (int64_t i = 0; i < cos.size(); ++i) {
    cos.set(i, std::cos(0.3 * static_cast<double>(i)));
    sin.set(i, std::sin(0.3 * static_cast<double>(i)));
  }
  rotate<T>(x.data(), cos.data(), sin.data(), y.data(), kBatch, kLength, kHeads, size, rotary,
            static_cast<Wide<T>>(direction));
  return std::tuple(y, cos, sin);
}

TYPED_TEST(Kernels, RotateTurnsHalfSplitPairsByTheAngleOfTheirPosition) {
  using T = TypeParam;
  for (const int64_t size : kOddSizes) {
    const int64_t half = size / 2;
    const Array<T> x(kBatch * kLength * kHeads * size, 0.6);
    for (const int direction : {1, -1}) {
      const auto [y, cos, sin] = rotated<T>(size, direction);
      for (int64_t row = 0; row < kBatch * kLength * kHeads; ++row) {
        const int64_t position = row / kHeads % kLength;
        for (int64_t i = 0; i < half; ++i) {
          const double a = x[row * size + i], b = x[row * size + i + half];
          const double c = cos[position * half + i], s = direction * sin[position * half + i];
          const double tolerance = elementwise_tolerance<T>() * (std::abs(a) + std::abs(b));
          EXPECT_NEAR(y[row * size + i], a * c - b * s, tolerance);
          EXPECT_NEAR(y[row * size + i + half], b * c + a * s, tolerance);
        }
        if (size % 2 == 1) {
          EXPECT_EQ(y[row * size + size - 1], x[row * size + size - 1]);
        }
      }
    }
  }
}

template <typename T>
auto layer_norm(int64_t dim) {
  const Array<T> x(kRows * dim, 0.1), gain(dim, 0.2), bias(dim, 0.5), dy(kRows * dim, 0.3);
  Array<T> y(kRows * dim), dx(kRows * dim);
  Array<Wide<T>> mean(kRows), rstd(kRows), d_gain(dim, 0.4), d_bias(dim, 0.6);
  layer_norm_forward<T>(x.data(), gain.data(), bias.data(), y.data(), mean.data(), rstd.data(),
                        kRows, dim, 1e-5);
  layer_norm_backward<T>(dy.data(), x.data(), gain.data(), mean.data(), rstd.data(), dx.data(),
                         d_gain.data(), d_bias.data(), kRows, dim);
  return std::tuple(y, mean, rstd, dx, d_gain, d_bias);
}

TYPED_TEST(Kernels, LayerNormHasOneResultOnEveryProcessor) {
  for (const int64_t dim : kOddSizes)
    expect_same_bits_from_all_versions([&] { return layer_norm<TypeParam>(dim); });
}

TYPED_TEST(Kernels, RotateHasOneResultOnEveryProcessor) {
  for (const int64_t size : kOddSizes)
    expect_same_bits_from_all_versions([&] { return rotated<TypeParam>(size, -1); });
}

template <typename T>
auto swiglu(int64_t count) {
  const Array<T> gate(count, 0.7, 12.0), up(count, 0.8), dy(count, 0.9);
  Array<T> y(count), d_gate(count), d_up(count);
  swiglu_forward<T>(gate.data(), up.data(), y.data(), count);
  swiglu_backward<T>(dy.data(), gate.data(), up.data(), d_gate.data(), d_up.data(), count);
  return std::tuple(y, d_gate, d_up);
}

TYPED_TEST(Kernels, SwigluEqualsThePlainFormulas) {
  using T = TypeParam;
  for (const int64_t count : kOddSizes) {
    const auto [y, d_gate, d_up] = swiglu<T>(count);
    const Array<T> gate(count, 0.7, 12.0), up(count, 0.8), dy(count, 0.9);
    for (int64_t i = 0; i < count; ++i) {
      const double a = gate[i], s = 1.0 / (1.0 + std::exp(-a));
      const auto expect = [&](double actual, double expected, double scale) {
        EXPECT_NEAR(actual, expected,
                    unit_roundoff<T>() * std::abs(expected) + smallest_normal<T>() +
                        scale * elementwise_tolerance<Wide<T>>());
      };
      expect(y[i], a * s * up[i], std::abs(a * s * up[i]));
      expect(d_up[i], a * s * dy[i], std::abs(a * s * dy[i]));
      // The two terms of the slope cancel for negative a.
      expect(d_gate[i], (s + a * s * (1.0 - s)) * dy[i] * up[i],
             (s + std::abs(a * s * (1.0 - s))) * std::abs(dy[i] * up[i]));
    }
  }
}

TYPED_TEST(Kernels, SwigluHasOneResultOnEveryProcessor) {
  for (const int64_t count : kOddSizes)
    expect_same_bits_from_all_versions([&] { return swiglu<TypeParam>(count); });
}

TYPED_TEST(Kernels, SwigluOfLargeGatesIsZeroOrTheGate) {
  using T = TypeParam;
  Array<T> gate(2), up(2), y(2);
  gate.set(0, -1000.0);
  gate.set(1, 1000.0);
  up.set(0, 2.0);
  up.set(1, 2.0);
  swiglu_forward<T>(gate.data(), up.data(), y.data(), 2);
  EXPECT_EQ(y[0], 0.0);
  EXPECT_EQ(y[1], 2000.0);
}

template <typename T>
struct LossRows {
  int64_t vocabulary;
  Array<T> logits{kRows * vocabulary, 1.1, 6.0};
  Array<int64_t> labels = make_labels();
  Array<double> losses{kRows};
  Array<Wide<T>> largest{kRows}, inverse_sum{kRows}, scale = make_scale();

  Array<int64_t> make_labels() const {
    Array<int64_t> made(kRows);
    for (int64_t row = 0; row < kRows; ++row) made.data()[row] = (row * 11) % vocabulary;
    return made;
  }
  Array<Wide<T>> make_scale() const {
    Array<Wide<T>> made(kRows, 1.3, 0.5);
    made.set(3, 0.0);  // a masked row
    return made;
  }
  void forward() {
    cross_entropy_forward<T>(logits.data(), labels.data(), losses.data(), largest.data(),
                             inverse_sum.data(), kRows, vocabulary);
  }
  void backward(T* d_logits) {
    cross_entropy_backward<T>(logits.data(), labels.data(), largest.data(), inverse_sum.data(),
                              scale.data(), d_logits, kRows, vocabulary);
  }
};

TYPED_TEST(Kernels, CrossEntropyEqualsThePlainFormulas) {
  using T = TypeParam;
  constexpr double kWide = summed_tolerance<Wide<T>>();
  for (const int64_t vocabulary : kOddSizes) {
    LossRows<T> rows{vocabulary};
    rows.forward();
    Array<T> d_logits(kRows * vocabulary);
    rows.backward(d_logits.data());
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t base = row * vocabulary, label = rows.labels.data()[row];
      double sum = 0.0;
      for (int64_t i = 0; i < vocabulary; ++i) sum += std::exp(rows.logits[base + i]);
      EXPECT_NEAR(rows.losses[row], std::log(sum) - rows.logits[base + label], 16 * kWide);
      for (int64_t i = 0; i < vocabulary; ++i) {
        const double softmax = std::exp(rows.logits[base + i]) / sum;
        const double expected = (softmax - (i == label ? 1.0 : 0.0)) * rows.scale[row];
        EXPECT_NEAR(d_logits[base + i], expected,
                    unit_roundoff<T>() * std::abs(expected) + smallest_normal<T>() +
                        kWide * std::abs(rows.scale[row]) * (softmax + (i == label ? 1.0 : 0.0)));
      }
    }
  }
}

TYPED_TEST(Kernels, CrossEntropyHasOneResultOnEveryProcessorAlsoInPlace) {
  using T = TypeParam;
  for (const int64_t vocabulary : kOddSizes) {
    Array<T> apart(kRows * vocabulary);
    expect_same_bits_from_all_versions([&] {
      LossRows<T> rows{vocabulary};
      rows.forward();
      rows.backward(apart.data());
      rows.backward(rows.logits.data());
      EXPECT_TRUE(rows.logits.same_bits(apart));
      return std::tuple(rows.losses, rows.largest, rows.inverse_sum, rows.logits);
    });
  }
}

TYPED_TEST(Kernels, CrossEntropyShowsANanInTheLogits) {
  LossRows<TypeParam> rows{17};
  rows.logits.set(17 + 5, std::numeric_limits<double>::quiet_NaN());
  rows.forward();
  EXPECT_FALSE(std::isnan(rows.losses[0]));
  EXPECT_TRUE(std::isnan(rows.losses[1]));
}

// Rows that see all keys, the first ones, the last ones and one in the middle.
std::vector<KeyRange> key_ranges(int64_t width) {
  return {{0, width}, {0, (width + 1) / 2}, {width / 2, width}, {width / 2, width / 2 + 1}};
}

template <typename A>
auto softmax(int64_t width, double scale) {
  const std::vector<KeyRange> ranges = key_ranges(width);
  const auto rows = static_cast<int64_t>(ranges.size());
  Array<A> weights(rows * width, 2.1, 6.0), again(rows * width, 2.1, 6.0);
  Array<A> log_sum(rows), d(rows * width, 2.2), row_dot(rows);
  const auto factor = static_cast<A>(scale);
  softmax_forward<A>(weights.data(), ranges.data(), rows, width, factor, log_sum.data());
  softmax_again<A>(again.data(), ranges.data(), rows, width, factor, log_sum.data());
  row_dots<A>(d.data(), weights.data(), rows, width, width, row_dot.data());
  softmax_backward<A>(d.data(), weights.data(), row_dot.data(), rows, width, factor);
  return std::tuple(weights, again, log_sum, row_dot, d);
}

template <typename A>
void expect_softmax_of_ranges(int64_t width) {
  constexpr double kScale = 0.75, kTolerance = 16 * summed_tolerance<A>();
  const std::vector<KeyRange> ranges = key_ranges(width);
  const auto rows = static_cast<int64_t>(ranges.size());
  const auto [weights, again, log_sum, row_dot, d] = softmax<A>(width, kScale);
  const Array<A> scores(rows * width, 2.1, 6.0), d_weights(rows * width, 2.2);
  for (int64_t row = 0; row < rows; ++row) {
    const KeyRange range = ranges[static_cast<size_t>(row)];
    double sum = 0.0, dot = 0.0;
    for (int64_t i = range.first; i < range.end; ++i)
      sum += std::exp(scores[row * width + i] * kScale);
    std::vector<double> expected(static_cast<size_t>(width));
    for (int64_t i = range.first; i < range.end; ++i) {
      expected[static_cast<size_t>(i)] = std::exp(scores[row * width + i] * kScale) / sum;
      dot += expected[static_cast<size_t>(i)] * d_weights[row * width + i];
    }
    EXPECT_NEAR(log_sum[row], std::log(sum), kTolerance);
    EXPECT_NEAR(row_dot[row], dot, kTolerance);
    for (int64_t i = 0; i < width; ++i) {
      const double weight = expected[static_cast<size_t>(i)];
      EXPECT_NEAR(weights[row * width + i], weight, kTolerance * weight);
      EXPECT_NEAR(again[row * width + i], weight, kTolerance * weight);
      EXPECT_NEAR(d[row * width + i], weight * (d_weights[row * width + i] - dot) * kScale,
                  kTolerance);
    }
  }
}

TEST(SoftmaxKernels, EqualThePlainFormulasOnTheRangeOfEachRow) {
  for (const int64_t width : kOddSizes) {
    expect_softmax_of_ranges<float>(width);
    expect_softmax_of_ranges<double>(width);
  }
}

TEST(SoftmaxKernels, HaveOneResultOnEveryProcessor) {
  for (const int64_t width : kOddSizes) {
    expect_same_bits_from_all_versions([&] { return softmax<float>(width, 0.75); });
    expect_same_bits_from_all_versions([&] { return softmax<double>(width, 0.75); });
  }
}

template <typename T>
auto added_rows(int64_t dim) {
  const Array<T> rows(4 * dim, 1.5);
  const std::vector<int64_t> index = {2, 0, 2, 1};
  Array<Wide<T>> table(3 * dim, 1.6);
  add_rows<T>(rows.data(), {index.data(), 4, 3, dim}, table.data());
  return std::tuple(table);
}

// Rows of other ranks: read as zeros, and nothing is added for them.
TYPED_TEST(Kernels, RowsBeyondTheTableAreZerosAndAddNothing) {
  using T = TypeParam;
  constexpr int64_t kDim = 5;
  const std::vector<int64_t> index = {-1, 1, 3, 2};
  const TableRows which{index.data(), 4, 3, kDim};
  const Array<T> table(3 * kDim, 1.5);
  Array<T> taken(4 * kDim, 1.5);
  take_rows<T>(table.data(), which, taken.data());
  const Array<T> rows(4 * kDim, 1.7);
  Array<Wide<T>> sum(3 * kDim, 1.6);
  const Array<Wide<T>> before(3 * kDim, 1.6);
  add_rows<T>(rows.data(), which, sum.data());
  for (int64_t i = 0; i < kDim; ++i) {
    EXPECT_EQ(taken[i], 0.0);
    EXPECT_EQ(taken[kDim + i], table[kDim + i]);
    EXPECT_EQ(taken[2 * kDim + i], 0.0);
    EXPECT_EQ(taken[3 * kDim + i], table[2 * kDim + i]);
    EXPECT_EQ(sum[i], before[i]);
    EXPECT_NE(sum[kDim + i], before[kDim + i]);
    EXPECT_NE(sum[2 * kDim + i], before[2 * kDim + i]);
  }
}

TYPED_TEST(Kernels, AddRowsAddsEachRowWhereItsIndexSays) {
  using T = TypeParam;
  for (const int64_t dim : kOddSizes) {
    const auto [table] = added_rows<T>(dim);
    const Array<T> rows(4 * dim, 1.5);
    const Array<Wide<T>> before(3 * dim, 1.6);
    for (int64_t i = 0; i < dim; ++i) {
      constexpr double kTolerance = 8 * elementwise_tolerance<Wide<T>>();
      EXPECT_NEAR(table[i], before[i] + rows[dim + i], kTolerance);
      EXPECT_NEAR(table[dim + i], before[dim + i] + rows[3 * dim + i], kTolerance);
      EXPECT_NEAR(table[2 * dim + i], before[2 * dim + i] + rows[i] + rows[2 * dim + i],
                  kTolerance);
    }
  }
}

TYPED_TEST(Kernels, AddRowsHasOneResultOnEveryProcessor) {
  for (const int64_t dim : kOddSizes)
    expect_same_bits_from_all_versions([&] { return added_rows<TypeParam>(dim); });
}

}  // namespace
}  // namespace sevenfold::kernels

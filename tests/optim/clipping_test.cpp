#include "sevenfold/optim/clipping.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<Parameter> with_gradient(ShardSpec spec, const at::Tensor& gradient) {
  auto parameter = std::make_unique<Parameter>("w", ParameterKind::kMatrix, std::move(spec));
  parameter->bind(at::zeros_like(gradient), gradient);
  return parameter;
}

TEST(ClipFactor, AddsMegatronsConstantToTheNorm) {
  EXPECT_EQ(clip_factor(4.0, 1.0), 1.0 / (4.0 + 1e-6));
  // The golden AdamW run, step 1: clip_grad 0.5.
  EXPECT_DOUBLE_EQ(clip_factor(4.520925016734058, 0.5), 0.11059681095184185);
  EXPECT_EQ(clip_factor(1.0, 1.0), 1.0 / (1.0 + 1e-6));
  EXPECT_EQ(clip_factor(0.999, 1.0), 1.0);
  EXPECT_EQ(clip_factor(0.0, 1.0), 1.0);
}

TEST(ClipFactor, ZeroTurnsClippingOff) {
  EXPECT_EQ(clip_factor(1e9, 0.0), 1.0);
  EXPECT_EQ(clip_factor(kNan, 0.0), 1.0);
}

TEST(ClipFactor, PassesOnANormThatIsNotFinite) {
  EXPECT_TRUE(std::isnan(clip_factor(kNan, 1.0)));
  EXPECT_EQ(clip_factor(kInfinity, 1.0), 0.0);
}

double norm_on_one_rank(const std::vector<Parameter*>& parameters) {
  double norm = 0.0;
  run_ranks(Mesh(MeshShape{}), ClusterOptions{},
            [&](RankContext& context) { norm = gradient_norm(parameters, context); });
  return norm;
}

TEST(GradientNorm, IsThatOfAllParametersTogether) {
  const auto single = with_gradient(replicated_spec({1}), at::full({1}, 3.0, at::kFloat));
  const auto square = with_gradient(replicated_spec({2, 2}), at::full({2, 2}, 2.0, at::kDouble));
  EXPECT_EQ(norm_on_one_rank({single.get(), square.get()}), 5.0);
}

TEST(GradientNorm, SumsInFp64) {
  // Squares of 1e30 overflow fp32.
  const auto parameter = with_gradient(replicated_spec({100}), at::full({100}, 1e30, at::kFloat));
  EXPECT_NEAR(norm_on_one_rank({parameter.get()}) / 1e31, 1.0, 1e-7);
}

TEST(GradientNorm, ShowsWhatIsNotFinite) {
  const auto parameter = with_gradient(replicated_spec({100}), at::ones({100}, at::kDouble));
  parameter->gradient()[99] = kInfinity;
  EXPECT_EQ(norm_on_one_rank({parameter.get()}), kInfinity);
  parameter->gradient()[50] = kNan;
  EXPECT_TRUE(std::isnan(norm_on_one_rank({parameter.get()})));
}

TEST(GradientNorm, CountsEachLogicalElementOnceOverTheModelParallelRanks) {
  // Two tp ranks with the halves 3 and 4 of one parameter, and 12 held by both.
  const Mesh mesh(MeshShape{.tp = 2, .dp = 2, .etp = 2});
  run_ranks(mesh, ClusterOptions{}, [](RankContext& context) {
    ShardSpec cut{.global_shape = {2}, .placements = {{.axis = Axis::kTp, .dim = 0}}};
    const int64_t tp = context.coordinates[static_cast<size_t>(Axis::kTp)];
    const auto half = with_gradient(cut, at::full({1}, tp == 0 ? 3.0 : 4.0, at::kDouble));
    const auto whole = with_gradient(replicated_spec({1}), at::full({1}, 12.0, at::kDouble));
    EXPECT_EQ(gradient_norm({half.get(), whole.get()}, context), 13.0);
  });
}

// Four data-parallel ranks own 3, 4, nothing and 12 of one parameter.
TEST(GradientNorm, AddsTheShardsOfTheDataParallelRanks) {
  run_ranks(Mesh(MeshShape{.dp = 4}), ClusterOptions{}, [](RankContext& context) {
    const auto cut = with_gradient(replicated_spec({3}), at::full({3}, 1e6, at::kDouble));
    const double values[] = {3.0, 4.0, 0.0, 12.0};
    const int64_t own = context.rank == 2 ? 0 : 1, begin = context.rank - context.rank / 3;
    cut->own({begin, begin + own}, at::zeros({own}, at::kDouble),
             at::full({own}, values[context.rank], at::kDouble));
    EXPECT_EQ(gradient_norm({cut.get()}, context, "world"), 13.0);
    EXPECT_EQ(zeros_in_gradient({cut.get()}, context, "world"), 0);
  });
}

}  // namespace
}  // namespace sevenfold

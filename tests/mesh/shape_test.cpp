#include "sevenfold/mesh/shape.h"

#include <gmock/gmock.h>

#include <string>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <typename Body>
std::string refusal(Body body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const MeshShape& shape) {
  return refusal([&] { check_shape(shape); });
}

TEST(Axis, NamesFollowTheOrderOfTheAxes) {
  const char* const names[] = {"tp", "cp", "dp", "pp", "etp", "ep", "edp"};
  for (int index = 0; index < kNumAxes; ++index)
    EXPECT_EQ(axis_name(static_cast<Axis>(index)), names[index]);
}

TEST(Shape, DegreeOneOfEverythingWorks) {
  EXPECT_EQ(refusal_of(MeshShape{}), "accepted");
  EXPECT_EQ(MeshShape{}.world_size(), 1);
}

TEST(Shape, DegreesMultiplyToTheWorldInBothViews) {
  const MeshShape shape{.tp = 2, .dp = 4, .pp = 2, .etp = 1, .ep = 4};
  EXPECT_EQ(shape.world_size(), 16);
  EXPECT_EQ(shape.edp(), 2);
  EXPECT_EQ(shape.degree(Axis::kEdp), 2);
  EXPECT_EQ(shape.degree(Axis::kDp), 4);
}

TEST(Shape, ExpertsThatNeedMoreRanksThanThereAre) {
  EXPECT_THAT(refusal_of({.tp = 2, .dp = 4, .etp = 2, .ep = 8}),
              AllOf(HasSubstr("a world of 8 ranks"),
                    HasSubstr("expert_tensor_parallel_size=2 x expert_model_parallel_size=8"),
                    HasSubstr("= 16"), HasSubstr("use 16 or 32 ranks")));
}

TEST(Shape, ExpertParallelThreeOnEightRanks) {
  EXPECT_THAT(refusal_of({.dp = 8, .ep = 3}),
              AllOf(HasSubstr("expert_model_parallel_size=3"), HasSubstr("use 6 or 9 ranks")));
}

TEST(Shape, SuggestedSizesServeTheDenseViewToo) {
  EXPECT_THAT(refusal_of({.tp = 2, .dp = 4, .ep = 3}), HasSubstr("use 6 or 12 ranks"));
}

TEST(Shape, DegreesBelowOneAreRefusedByName) {
  EXPECT_THAT(refusal_of({.tp = 0}), HasSubstr("tensor_model_parallel_size=0"));
  EXPECT_THAT(refusal_of({.cp = -2}), HasSubstr("context_parallel_size=-2"));
  EXPECT_THAT(refusal_of({.pp = 0}), HasSubstr("pipeline_model_parallel_size=0"));
  EXPECT_THAT(refusal_of({.etp = 0}), HasSubstr("expert_tensor_parallel_size=0"));
  EXPECT_THAT(refusal_of({.ep = 0}), HasSubstr("expert_model_parallel_size=0"));
  EXPECT_THAT(refusal_of({.dp = 0}), HasSubstr("data parallel size=0"));
  EXPECT_THAT(refusal_of({.ranks_per_node = 0}), HasSubstr("ranks per node=0"));
}

TEST(Shape, SizesBeyondTheLimitAreRefusedBeforeTheyOverflow) {
  EXPECT_THAT(refusal_of({.tp = kMaxWorldSize, .cp = kMaxWorldSize, .pp = kMaxWorldSize}),
              HasSubstr("multiply to more than 16777216 ranks"));
  EXPECT_THAT(refusal_of({.tp = int64_t{1} << 40}), HasSubstr("is more than"));
  EXPECT_THAT(refusal_of({.etp = 2, .ep = kMaxWorldSize}), HasSubstr("more than"));
}

TEST(Shape, MappingWithPipelineNeedsEqualDataParallelism) {
  MeshShape shape{.tp = 2, .dp = 4, .pp = 2, .etp = 1, .ep = 4, .tp_pp_dp_mapping = true};
  EXPECT_THAT(refusal_of(shape),
              AllOf(HasSubstr("use_tp_pp_dp_mapping"), HasSubstr("they are 4 and 2")));
  shape.ep = 2;
  EXPECT_NO_THROW(check_shape(shape));
  EXPECT_NO_THROW(check_shape({.tp = 2, .dp = 4, .etp = 1, .ep = 4, .tp_pp_dp_mapping = true}));
}

}  // namespace
}  // namespace sevenfold

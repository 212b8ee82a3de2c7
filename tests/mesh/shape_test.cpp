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

std::string refusal_of_world(const MeshShape& degrees, int64_t world_size) {
  return refusal([&] { fill_world(degrees, world_size); });
}

TEST(Axis, NamesAreReadBack) {
  for (int index = 0; index < kNumAxes; ++index) {
    const auto axis = static_cast<Axis>(index);
    EXPECT_EQ(parse_axis(axis_name(axis)), axis);
  }
  EXPECT_THAT(refusal([] { parse_axis("vp"); }), AllOf(HasSubstr("'vp'"), HasSubstr("edp")));
}

TEST(Shape, DegreeOneOfEverythingWorks) {
  EXPECT_NO_THROW(check_shape(MeshShape{}));
  EXPECT_EQ(smallest_world_size(MeshShape{}), 1);
  EXPECT_EQ(fill_world(MeshShape{}, 8).dp, 8);
}

TEST(Shape, FillWorldFindsTheDataParallelDegree) {
  const MeshShape shape = fill_world({.tp = 2, .pp = 2, .etp = 1, .ep = 4}, 16);
  EXPECT_EQ(shape.dp, 4);
  EXPECT_EQ(shape.edp(), 2);
  EXPECT_EQ(shape.degree(Axis::kEdp), 2);
}

TEST(Shape, SmallestWorldServesBothViews) {
  EXPECT_EQ(smallest_world_size({.tp = 2, .pp = 2, .etp = 2}), 4);
  EXPECT_EQ(smallest_world_size({.tp = 2, .pp = 2, .etp = 1, .ep = 8}), 16);
  EXPECT_EQ(smallest_world_size({.tp = 2, .etp = 1, .ep = 3}), 6);
}

TEST(Shape, TensorParallelThreeOnEightRanks) {
  EXPECT_THAT(refusal_of_world({.tp = 3, .etp = 3}, 8),
              AllOf(HasSubstr("a world of 8 ranks"), HasSubstr("tensor_model_parallel_size=3"),
                    HasSubstr("= 3;"), HasSubstr("use 6 or 9 ranks")));
}

TEST(Shape, ProductSixteenOnEightRanks) {
  EXPECT_THAT(
      refusal_of_world({.tp = 2, .cp = 4, .pp = 2, .etp = 2}, 8),
      AllOf(HasSubstr("context_parallel_size=4"), HasSubstr("pipeline_model_parallel_size=2 = 16"),
            HasSubstr("use 16 or 32 ranks")));
}

TEST(Shape, ExpertsThatNeedMoreRanksThanThereAre) {
  EXPECT_THAT(refusal_of_world({.tp = 2, .etp = 2, .ep = 8}, 8),
              AllOf(HasSubstr("expert_tensor_parallel_size=2 x expert_model_parallel_size=8"),
                    HasSubstr("= 16"), HasSubstr("use 16 or 32 ranks")));
}

TEST(Shape, ExpertParallelThreeOnEightRanks) {
  EXPECT_THAT(refusal_of_world({.ep = 3}, 8),
              AllOf(HasSubstr("expert_model_parallel_size=3"), HasSubstr("use 6 or 9 ranks")));
}

TEST(Shape, DegreesBelowOneAreRefusedByName) {
  EXPECT_THAT(refusal([] { check_shape({.tp = 0}); }), HasSubstr("tensor_model_parallel_size=0"));
  EXPECT_THAT(refusal([] { check_shape({.cp = -2}); }), HasSubstr("context_parallel_size=-2"));
  EXPECT_THAT(refusal([] { check_shape({.pp = 0}); }), HasSubstr("pipeline_model_parallel_size=0"));
  EXPECT_THAT(refusal([] { check_shape({.etp = 0}); }), HasSubstr("expert_tensor_parallel_size=0"));
  EXPECT_THAT(refusal([] { check_shape({.ep = 0}); }), HasSubstr("expert_model_parallel_size=0"));
  EXPECT_THAT(refusal([] { check_shape({.dp = 0}); }), HasSubstr("data parallel size=0"));
  EXPECT_THAT(refusal([] { check_shape({.ranks_per_node = 0}); }), HasSubstr("ranks per node=0"));
  EXPECT_THAT(refusal_of_world({}, 0), HasSubstr("world size=0"));
}

TEST(Shape, SizesBeyondTheLimitAreRefusedBeforeTheyOverflow) {
  EXPECT_THAT(
      refusal([] { check_shape({.tp = kMaxWorldSize, .cp = kMaxWorldSize, .pp = kMaxWorldSize}); }),
      HasSubstr("multiply to more than 16777216 ranks"));
  EXPECT_THAT(refusal([] { check_shape({.tp = int64_t{1} << 40}); }), HasSubstr("is more than"));
  EXPECT_THAT(refusal_of_world({.etp = 2, .ep = kMaxWorldSize}, 8), HasSubstr("more than"));
}

TEST(Shape, MappingWithPipelineNeedsEqualDataParallelism) {
  MeshShape shape{.tp = 2, .dp = 4, .pp = 2, .etp = 1, .ep = 4, .tp_pp_dp_mapping = true};
  EXPECT_THAT(refusal([&] { check_shape(shape); }),
              AllOf(HasSubstr("use_tp_pp_dp_mapping"), HasSubstr("they are 4 and 2")));
  shape.ep = 2;
  EXPECT_NO_THROW(check_shape(shape));
  EXPECT_NO_THROW(check_shape({.tp = 2, .dp = 4, .etp = 1, .ep = 4, .tp_pp_dp_mapping = true}));
}

}  // namespace
}  // namespace sevenfold

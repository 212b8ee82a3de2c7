#include "sevenfold/mesh/shape.h"

#include <gmock/gmock.h>

#include <string>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using testing::HasSubstr;

std::string refusal_of(const MeshShape& shape) {
  try {
    check_shape(shape);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "accepted";
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

TEST(Shape, ExpertsMustFillTheWorldToo) {
  EXPECT_THAT(refusal_of({.tp = 2, .dp = 4, .etp = 2, .ep = 8}),
              HasSubstr("8 ranks, etp 2 x ep 8 x pp 1"));
  EXPECT_THAT(refusal_of({.dp = 8, .ep = 3}), HasSubstr("8 ranks, etp 1 x ep 3 x pp 1"));
}

TEST(Shape, DegreesBelowOneAreRefused) {
  for (const MeshShape& shape :
       {MeshShape{.tp = 0}, MeshShape{.cp = -2}, MeshShape{.dp = 0}, MeshShape{.pp = 0},
        MeshShape{.etp = 0}, MeshShape{.ep = 0}, MeshShape{.ranks_per_node = 0}})
    EXPECT_THAT(refusal_of(shape), HasSubstr("degree "));
}

TEST(Shape, SizesBeyondTheLimitAreRefusedBeforeTheyOverflow) {
  EXPECT_THAT(refusal_of({.tp = kMaxWorldSize, .cp = kMaxWorldSize, .pp = kMaxWorldSize}),
              HasSubstr("tp 16777216 x cp 16777216"));
  EXPECT_THAT(refusal_of({.tp = int64_t{1} << 40}), HasSubstr("degree 1099511627776"));
  EXPECT_THAT(refusal_of({.etp = 2, .ep = kMaxWorldSize}), HasSubstr("etp 2 x ep 16777216"));
}

TEST(Shape, MappingWithPipelineNeedsEqualDataParallelism) {
  MeshShape shape{.tp = 2, .dp = 4, .pp = 2, .etp = 1, .ep = 4, .tp_pp_dp_mapping = true};
  EXPECT_THAT(refusal_of(shape), HasSubstr("dp 4 and edp 2"));
  shape.ep = 2;
  EXPECT_NO_THROW(check_shape(shape));
  EXPECT_NO_THROW(check_shape({.tp = 2, .dp = 4, .etp = 1, .ep = 4, .tp_pp_dp_mapping = true}));
}

}  // namespace
}  // namespace sevenfold

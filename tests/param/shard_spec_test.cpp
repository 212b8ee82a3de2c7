#include "sevenfold/param/shard_spec.h"

#include <gtest/gtest.h>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// A [8, 6] matrix cut over tp along dimension 0; dp and cp see different tokens.
ShardSpec column_spec(int64_t copies = 1) {
  ShardSpec spec = replicated_spec({8, 6});
  spec.placements.push_back(
      {.axis = Axis::kTp, .dim = 0, .copies = copies, .partial_gradient = copies > 1});
  return spec;
}

TEST(LocalSlice, CutsTheNamedDimensionByTheAxis) {
  const Mesh mesh({.tp = 4, .dp = 2});
  const Slice slice = local_slice(column_spec(), mesh, mesh.coordinates(mesh.rank(2, 0, 1, 0)));
  EXPECT_EQ(slice.offsets, (std::vector<int64_t>{4, 0}));
  EXPECT_EQ(slice.sizes, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(slice.num_elements(), 12);
}

TEST(LocalSlice, GivesNeighboursTheSameSliceWhereCopiesAreHeld) {
  const Mesh mesh({.tp = 4});
  for (const int64_t tp : {2, 3}) {
    const Slice slice = local_slice(column_spec(2), mesh, mesh.coordinates(tp));
    EXPECT_EQ(slice.offsets[0], 4) << tp;
    EXPECT_EQ(slice.sizes[0], 4) << tp;
  }
}

TEST(LocalSlice, RefusesAnAxisThatDoesNotDivide) {
  const Mesh mesh({.tp = 3});
  EXPECT_THROW(local_slice(column_spec(), mesh, mesh.coordinates(0)), InternalError);
}

TEST(LocalSlice, GivesUnevenPartsThatFitTogether) {
  ShardSpec spec = replicated_spec({11, 6});
  spec.placements.push_back({.axis = Axis::kTp, .dim = 0, .is_uneven = true});
  const Mesh mesh({.tp = 4});
  std::vector<int64_t> sizes;
  int64_t end = 0;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const Slice slice = local_slice(spec, mesh, mesh.coordinates(rank));
    EXPECT_EQ(slice.offsets[0], end);
    end += slice.sizes[0];
    sizes.push_back(slice.sizes[0]);
  }
  EXPECT_EQ(end, 11);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 3, 3, 3}));
}

TEST(TensorSumGroup, IsThatOfTheCopiesWhereATensorIsCut) {
  EXPECT_EQ(tensor_sum_group(column_spec()), "");
  EXPECT_EQ(tensor_sum_group(column_spec(2)), "tp-copies");
  ShardSpec partial = replicated_spec({6});
  EXPECT_EQ(tensor_sum_group(partial), "");
  partial.placements.push_back({.axis = Axis::kTp, .partial_gradient = true});
  EXPECT_EQ(tensor_sum_group(partial), "tp");
}

TEST(ReplicaGroups, AreThoseThatHoldTheSameBits) {
  using Groups = std::vector<std::string>;
  EXPECT_EQ(replica_groups(replicated_spec({6})), (Groups{"dp-cp", "tp"}));
  EXPECT_EQ(replica_groups(column_spec()), (Groups{"dp-cp"}));
  EXPECT_EQ(replica_groups(column_spec(2)), (Groups{"dp-cp", "tp-copies"}));
}

TEST(GradientSumAxes, AreThoseThatSeeOnlyPart) {
  EXPECT_EQ(gradient_sum_axes(replicated_spec({3})), (std::vector<Axis>{Axis::kCp, Axis::kDp}));
  EXPECT_EQ(gradient_sum_axes(column_spec(2)),
            (std::vector<Axis>{Axis::kCp, Axis::kDp, Axis::kTp}));
}

TEST(CountsInNorm, CountsEachLogicalElementOnceInEveryModelParallelGroup) {
  const Mesh mesh({.tp = 4, .dp = 2, .pp = 2});
  for (const ShardSpec& spec :
       {replicated_spec({8, 6}), column_spec(), column_spec(2), column_spec(4)}) {
    for (const RankGroup& group : mesh.groups({Axis::kTp, Axis::kPp})) {
      int64_t counted = 0;
      for (const int64_t rank : group.ranks)
        if (counts_in_norm(spec, mesh, mesh.coordinates(rank)))
          counted += local_slice(spec, mesh, mesh.coordinates(rank)).num_elements();
      EXPECT_EQ(counted, spec.num_elements());
    }
  }
}

TEST(CountsInNorm, CountsATableOwnedByTwoStagesOnce) {
  const Mesh mesh({.pp = 3});
  ShardSpec spec = replicated_spec({5});
  spec.owners = {0, 2};
  EXPECT_TRUE(counts_in_norm(spec, mesh, mesh.coordinates(0)));
  EXPECT_FALSE(counts_in_norm(spec, mesh, mesh.coordinates(1)));
  EXPECT_FALSE(counts_in_norm(spec, mesh, mesh.coordinates(2)));
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/param/flat_storage.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/dist/allocator.h"

namespace sevenfold {
namespace {

class FlatStorage : public ::testing::Test {
 protected:
  FlatStorage() : mesh_(MeshShape{}) {
    install_allocator();
    rank_.mesh = &mesh_;
    rank_.coordinates = mesh_.coordinates(0);
  }
  Parameter* add(const std::string& name, std::vector<int64_t> shape) {
    owned_.push_back(std::make_unique<Parameter>(name, ParameterKind::kMatrix,
                                                 replicated_spec(std::move(shape))));
    return owned_.back().get();
  }

  Mesh mesh_;
  RankContext rank_;
  std::vector<std::unique_ptr<Parameter>> owned_;
};

TEST_F(FlatStorage, BooksExactlyTheElementsWithoutPadding) {
  Parameter *a = add("a", {3, 5}), *b = add("b", {7});
  const MemoryScope scope(&rank_.memory, MemoryCategory::kActivations);
  const auto buckets = build_buckets({{a}, {b}}, rank_, at::kFloat, 1000);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(rank_.memory.live(MemoryCategory::kParameters), (15 + 7) * 4);
  EXPECT_EQ(rank_.memory.live(MemoryCategory::kGradients), (15 + 7) * 4);
  EXPECT_EQ(rank_.memory.live(MemoryCategory::kActivations), 0);
}

TEST_F(FlatStorage, ViewsShareTheFlatMemoryAndDoNotOverlap) {
  Parameter *a = add("a", {2, 3}), *b = add("b", {4});
  auto buckets = build_buckets({{a, b}}, rank_, at::kDouble, 1);
  a->weight().fill_(1.0);
  b->weight().fill_(2.0);
  b->gradient().fill_(3.0);
  EXPECT_EQ(buckets[0].weights.sum().item<double>(), 6 * 1.0 + 4 * 2.0);
  EXPECT_EQ(buckets[0].gradients.sum().item<double>(), 12.0);
  EXPECT_TRUE(a->weight().is_contiguous());
}

TEST_F(FlatStorage, ClosesABucketAtTheLayerThatFillsIt) {
  // Backward order: layer 3 first. Four layers of 10 elements, buckets of 15: {3, 2}, {1, 0}.
  std::vector<std::vector<Parameter*>> layers;
  for (int i = 0; i < 4; ++i) layers.push_back({add("p" + std::to_string(i), {10})});
  const auto buckets = build_buckets(layers, rank_, at::kDouble, 15);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].parameters, (std::vector<Parameter*>{layers[3][0], layers[2][0]}));
  EXPECT_EQ(buckets[0].last_layer, 2);
  EXPECT_EQ(buckets[1].last_layer, 0);
}

TEST_F(FlatStorage, GivesATiedTableABucketOfItsOwnCompletedByTheLowestUser) {
  Parameter *table = add("table", {4, 2}), *middle = add("middle", {3}), *norm = add("norm", {2});
  const auto buckets = build_buckets({{table}, {middle}, {norm, table}}, rank_, at::kDouble, 1);
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[2].parameters, std::vector<Parameter*>{table});
  EXPECT_EQ(buckets[2].last_layer, 0);
  int64_t total = 0;
  for (const Bucket& bucket : buckets) total += bucket.weights.numel();
  EXPECT_EQ(total, 8 + 3 + 2) << "a tied table is stored once";
}

// Seven rows on two tensor-parallel ranks, 3 and 4: buckets end at the same layer on both, or the
// two would sum different ones.
TEST(FlatStorageOfUnevenParts, EndsBucketsWhereTheOtherRanksDo) {
  for (const int64_t tp : {0, 1}) {
    const Mesh mesh(MeshShape{.tp = 2, .etp = 2});
    RankContext rank;
    rank.mesh = &mesh;
    rank.coordinates = mesh.coordinates(tp);
    Parameter rows(
        "rows", ParameterKind::kTable,
        {.global_shape = {7, 2}, .placements = {{.axis = Axis::kTp, .dim = 0, .is_uneven = true}}});
    Parameter below("below", ParameterKind::kMatrix, replicated_spec({3}));
    const auto buckets = build_buckets({{&below}, {&rows}}, rank, at::kFloat, 8);
    ASSERT_EQ(buckets.size(), 2U) << "tp " << tp;
    EXPECT_EQ(buckets[0].weights.numel(), tp == 0 ? 6 : 8);
  }
}

}  // namespace
}  // namespace sevenfold

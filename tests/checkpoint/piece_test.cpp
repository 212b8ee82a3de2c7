#include "sevenfold/checkpoint/piece.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace sevenfold {
namespace {

// Row-major indices, in the tensor, of the piece's elements: one by one.
std::vector<int64_t> elements_of(const Piece& piece, const std::vector<int64_t>& shape) {
  std::vector<int64_t> indices;
  for (int64_t element = piece.range.begin; element < piece.range.end; ++element) {
    int64_t rest = element, index = 0, stride = 1;
    for (size_t dim = shape.size(); dim-- > 0;) {
      index += (piece.slice.offsets[dim] + rest % piece.slice.sizes[dim]) * stride;
      rest /= piece.slice.sizes[dim];
      stride *= shape[dim];
    }
    indices.push_back(index);
  }
  return indices;
}

std::vector<int64_t> elements_of(const std::vector<PieceRun>& runs) {
  std::vector<int64_t> indices;
  for (const PieceRun& run : runs) {
    EXPECT_EQ(run.in_piece, static_cast<int64_t>(indices.size()));
    EXPECT_GT(run.size, 0);
    for (int64_t i = 0; i < run.size; ++i) indices.push_back(run.in_tensor + i);
  }
  return indices;
}

class RandomPieces {
 public:
  std::vector<int64_t> shape() {
    std::vector<int64_t> shape(static_cast<size_t>(between(1, 4)));
    for (int64_t& size : shape) size = between(1, 6);
    return shape;
  }
  // Of which a fair part are empty, whole in some dims, or one element.
  Piece piece(const std::vector<int64_t>& shape) {
    Slice slice;
    for (const int64_t size : shape) {
      const bool is_whole = between(0, 1) == 0;
      slice.offsets.push_back(is_whole ? 0 : between(0, size - 1));
      slice.sizes.push_back(is_whole ? size : between(1, size - slice.offsets.back()));
    }
    const int64_t elements = slice.num_elements();
    const int64_t begin = between(0, elements);
    return {slice, {begin, between(begin, elements)}};
  }

 private:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }
  std::mt19937 generator_{7};
};

TEST(Piece, RunsNameItsElementsInOrder) {
  RandomPieces random;
  for (int i = 0; i < 2000; ++i) {
    const auto shape = random.shape();
    const Piece piece = random.piece(shape);
    const auto runs = runs_of(piece, shape);
    EXPECT_EQ(elements_of(runs), elements_of(piece, shape));
    for (size_t r = 1; r < runs.size(); ++r)
      EXPECT_LT(runs[r - 1].in_tensor + runs[r - 1].size, runs[r].in_tensor)
          << "one run cut in two";
  }
}

TEST(Piece, OverlapsAreTheElementsOfBoth) {
  RandomPieces random;
  for (int i = 0; i < 2000; ++i) {
    const auto shape = random.shape();
    const Piece from = random.piece(shape), to = random.piece(shape);
    const auto in_from = elements_of(from, shape), in_to = elements_of(to, shape);
    std::map<int64_t, int64_t> expected;  // place in `to`: place in `from`
    for (size_t place = 0; place < in_to.size(); ++place) {
      const auto found = std::find(in_from.begin(), in_from.end(), in_to[place]);
      if (found != in_from.end()) expected[static_cast<int64_t>(place)] = found - in_from.begin();
    }
    std::map<int64_t, int64_t> shared;
    for (const Overlap& run : overlaps(runs_of(from, shape), runs_of(to, shape)))
      for (int64_t element = 0; element < run.size; ++element)
        EXPECT_TRUE(shared.emplace(run.to + element, run.from + element).second) << "twice";
    EXPECT_EQ(shared, expected);
  }
}

TEST(Piece, WholeSlicesAreOneRun) {
  const std::vector<int64_t> shape = {101, 32};
  EXPECT_EQ(runs_of(whole_piece(shape), shape), (std::vector<PieceRun>{{0, 0, 3232}}));
  const Piece rows = slice_piece({{50, 0}, {51, 32}});
  EXPECT_EQ(runs_of(rows, shape), (std::vector<PieceRun>{{1600, 0, 1632}}));
  const Piece columns = slice_piece({{0, 8}, {2, 8}});
  EXPECT_EQ(runs_of(columns, shape), (std::vector<PieceRun>{{8, 0, 8}, {40, 8, 8}}));
  EXPECT_TRUE(runs_of({{{0, 0}, shape}, {7, 7}}, shape).empty());
}

}  // namespace
}  // namespace sevenfold

#include "sevenfold/checkpoint/piece.h"

#include <algorithm>
#include <utility>

namespace sevenfold {
namespace {

// The blocks of a slice whose elements lie side by side in the tensor: all that its last dims, as
// far as they are whole, and the one before them span.
class Blocks {
 public:
  Blocks(const Slice& slice, const std::vector<int64_t>& shape)
      : slice_(slice), strides_(shape.size(), 1), num_outer_(shape.size()) {
    for (size_t dim = shape.size(); dim-- > 1;) strides_[dim - 1] = strides_[dim] * shape[dim];
    while (num_outer_ > 0) {
      --num_outer_;
      size_ *= slice.sizes[num_outer_];
      if (slice.sizes[num_outer_] != shape[num_outer_]) break;
    }
  }

  int64_t size() const { return size_; }
  // Row-major index in the tensor of the first element of a block.
  int64_t begin(int64_t block) const {
    int64_t index = 0;
    for (size_t dim = strides_.size(); dim-- > 0;) {
      int64_t at = slice_.offsets[dim];
      if (dim < num_outer_) {
        at += block % slice_.sizes[dim];
        block /= slice_.sizes[dim];
      }
      index += at * strides_[dim];
    }
    return index;
  }

 private:
  const Slice& slice_;
  std::vector<int64_t> strides_;  // of the tensor
  size_t num_outer_;              // dims that tell blocks apart
  int64_t size_ = 1;
};

void append(std::vector<PieceRun>& runs, const PieceRun& run) {
  if (!runs.empty() && runs.back().in_tensor + runs.back().size == run.in_tensor) {
    runs.back().size += run.size;
  } else {
    runs.push_back(run);
  }
}

}  // namespace

Piece whole_piece(const std::vector<int64_t>& shape) {
  return slice_piece({std::vector<int64_t>(shape.size(), 0), shape});
}

Piece slice_piece(Slice slice) {
  const int64_t elements = slice.num_elements();
  return {std::move(slice), {0, elements}};
}

std::vector<PieceRun> runs_of(const Piece& piece, const std::vector<int64_t>& shape) {
  std::vector<PieceRun> runs;
  if (piece.size() <= 0) return runs;
  const Blocks blocks(piece.slice, shape);
  const ElementRange range = piece.range;
  for (int64_t at = range.begin; at < range.end;) {
    const int64_t block = at / blocks.size();
    const int64_t end = std::min((block + 1) * blocks.size(), range.end);
    append(runs, {.in_tensor = blocks.begin(block) + at - block * blocks.size(),
                  .in_piece = at - range.begin,
                  .size = end - at});
    at = end;
  }
  return runs;
}

std::vector<Overlap> overlaps(const std::vector<PieceRun>& from, const std::vector<PieceRun>& to) {
  std::vector<Overlap> result;
  for (auto a = from.begin(), b = to.begin(); a != from.end() && b != to.end();) {
    const int64_t begin = std::max(a->in_tensor, b->in_tensor);
    const int64_t end = std::min(a->in_tensor + a->size, b->in_tensor + b->size);
    if (begin < end)
      result.push_back({.from = a->in_piece + begin - a->in_tensor,
                        .to = b->in_piece + begin - b->in_tensor,
                        .size = end - begin});
    a->in_tensor + a->size < b->in_tensor + b->size ? static_cast<void>(++a)
                                                    : static_cast<void>(++b);
  }
  return result;
}

}  // namespace sevenfold

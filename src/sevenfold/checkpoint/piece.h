#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/param/parameter.h"
#include "sevenfold/param/shard_spec.h"

namespace sevenfold {

// A part of a logical tensor: a run of the row-major order of one slice of it. What a rank owns of
// a parameter is one: its slice (tensor parallelism), and of that a run (ZeRO), maybe an empty one.
struct Piece {
  Slice slice;
  ElementRange range;  // of the slice's elements

  int64_t size() const { return range.size(); }
};

// The whole tensor.
Piece whole_piece(const std::vector<int64_t>& shape);
// The whole of a slice.
Piece slice_piece(Slice slice);

// Elements that lie side by side both in a tensor and in a piece of it.
struct PieceRun {
  int64_t in_tensor = 0;  // row-major index of the first
  int64_t in_piece = 0;   // its place, counted from the start of the piece
  int64_t size = 0;

  bool operator==(const PieceRun&) const = default;
};

// All elements of the piece, in as few runs as there are; ascending in both. shape: of the tensor.
std::vector<PieceRun> runs_of(const Piece& piece, const std::vector<int64_t>& shape);

// Elements that two pieces share and that lie side by side in both.
struct Overlap {
  int64_t from = 0;  // places, counted from the start of each piece
  int64_t to = 0;
  int64_t size = 0;

  bool operator==(const Overlap&) const = default;
};

// Both: runs_of pieces of one tensor. Linear in their number.
std::vector<Overlap> overlaps(const std::vector<PieceRun>& from, const std::vector<PieceRun>& to);

}  // namespace sevenfold

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sevenfold/config/config.h"

namespace sevenfold {

struct RotaryOptions {
  int64_t length = 0;     // positions 0 .. length-1
  int64_t head_size = 0;  // components of a head
  double percent = 1.0;   // share of them that is rotated, the first ones
  double base = 10000.0;
  bool interleaved = false;    // pairs (2i, 2i+1) instead of (i, i + rotary/2)
  double interpolation = 1.0;  // positions are divided by it
  std::optional<RopeScaling> scaling;
};

// Angles of rotary position embedding: cos and sin [length, rotary/2] of position * frequency.
struct RotaryTable {
  at::Tensor cos;
  at::Tensor sin;
  int64_t rotary = 0;  // components of a head that are rotated, the first ones
  bool interleaved = false;
};

// Frequencies base^(-2i/rotary), i < rotary/2, of which Llama-3 scaling divides the slow ones by
// its factor, keeps the fast ones and mixes in between. Sources: Su et al. 2021; Grattafiori et al.
// 2024 for the scaling.
std::vector<double> rotary_frequencies(int64_t rotary, double base,
                                       const std::optional<RopeScaling>& scaling);

// dtype: of the activations; the table itself is fp64 for fp64 and fp32 for all others.
RotaryTable rotary_table(const RotaryOptions& options, at::ScalarType dtype);

// Rotates the pairs of every head of x [B, T, heads, head_size]. positions [B, T] int64, each below
// the table's length; undefined: 0 .. T-1 in every row. The table outlives the graph.
at::Tensor rotate(const at::Tensor& x, const RotaryTable& table, const at::Tensor& positions = {});

}  // namespace sevenfold

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sevenfold {

// Angles of rotary position embedding for positions 0 .. length-1: cos and sin [length, rotary/2]
// of position * base^(-2i/rotary). Source: Su et al. 2021.
struct RotaryTable {
  at::Tensor cos;
  at::Tensor sin;
  int64_t rotary = 0;  // components of a head that are rotated, the first ones
};

RotaryTable rotary_table(int64_t length, int64_t head_size, double percent, double base,
                         at::ScalarType dtype);

// x [B, T, heads, head_size] with T <= length of the table: pairs (i, i + rotary/2) are rotated.
// The table outlives the graph.
at::Tensor rotate(const at::Tensor& x, const RotaryTable& table);

}  // namespace sevenfold

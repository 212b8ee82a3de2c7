#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sevenfold {

// Causal attention, softmax(q k^T * scale) v, over blocks of query rows: no score matrix of T x T
// is ever kept, only the output and the logarithm of each row's sum (Dao 2023, FlashAttention-2,
// without the tiling of keys: a block reads all keys up to its last row and nothing beyond). Shapes
// q [B, T, heads, d], k and v [B, T, groups, d], result [B, T, heads, d];
//          head h reads group h / (heads / groups).
// Memory   kept for backward: q, k, v, result and [B, heads, T] sums; under way: B * heads * block
// * T.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double scale);

// Query rows of one block.
inline constexpr int64_t kAttentionBlock = 256;

}  // namespace sevenfold

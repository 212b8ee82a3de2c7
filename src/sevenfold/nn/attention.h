#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/nn/dropout.h"

namespace sevenfold {

// What a query may see beside "not the future", and which probabilities are dropped.
struct AttentionMasks {
  // int64 [B, T]: query t sees keys first_key .. t (of its document); undefined: 0 .. t.
  at::Tensor first_key_BT;
  // Outlives the graph; null: none. Coordinates: head, position of the query, position of the key.
  const Dropout* dropout = nullptr;
  std::vector<int64_t> sample_ids;  // [B], for dropout
};

// What of its result attention keeps for backward, beside q, k and v.
enum class AttentionKeeps : uint8_t {
  kResult,  // the output and each row's sum
  kNothing  // backward computes them again
};

// Causal attention, dropout(softmax(q k^T * scale)) v, head by head over blocks of query rows: no
// score matrix of T x T is ever kept, only the output and the logarithm of each row's sum (Dao
// 2023, FlashAttention-2, without the tiling of keys: a block reads the keys from the first that
// one of its rows may see up to its last row and nothing else). Dropout is drawn per block and
// again in backward. Scores and softmax of bf16 and fp16 inputs are fp32. Shapes   q [B, T, heads,
// d], k and v [B, T, groups, d], result [B, T, heads, d];
//          head h reads group h / (heads / groups).
// Memory   kept for backward: q, k, v and, as `keeps` says, result and [B, heads, T] sums; under
//          way: 7 * T * d + 3 * block * T per thread, and fp32 copies of bf16 and fp16 inputs.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double scale, const AttentionMasks& masks = {},
                            AttentionKeeps keeps = AttentionKeeps::kResult);

// Query rows of one block: its scores fit in the second-level cache, and of all scores computed the
// share that no query may see is block / T at most.
inline constexpr int64_t kAttentionBlock = 128;

}  // namespace sevenfold

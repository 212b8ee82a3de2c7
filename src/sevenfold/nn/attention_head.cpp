#include "sevenfold/nn/internal/attention_head.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sevenfold/nn/attention.h"

namespace sevenfold::internal {
namespace {

using kernels::KeyRange;

// Query rows first .. end-1 against keys first_key .. end-1: what lies outside is seen by none of
// them. `ranges` count from first_key.
struct Block {
  int64_t first = 0;
  int64_t end = 0;
  int64_t first_key = 0;
  std::vector<KeyRange> ranges{};
  int64_t rows() const { return end - first; }
  int64_t keys() const { return end - first_key; }
  int64_t elements() const { return rows() * keys(); }
};

template <typename Body>
void for_each_block(const std::vector<KeyRange>& ranges, const Body& body) {
  const auto length = static_cast<int64_t>(ranges.size());
  Block block;
  for (block.first = 0; block.first < length; block.first = block.end) {
    block.end = std::min(block.first + kAttentionBlock, length);
    block.ranges.assign(ranges.begin() + block.first, ranges.begin() + block.end);
    block.first_key = block.end;
    for (const KeyRange& range : block.ranges)
      block.first_key = std::min(block.first_key, range.first);
    for (KeyRange& range : block.ranges) {
      range.first -= block.first_key;
      range.end -= block.first_key;
    }
    body(block);
  }
}

template <typename A>
Matrix<A> rows_from(HeadRows<A> x, int64_t first) {
  return {x.row(first), x.stride};
}

// Hands out the scratch of a pass piece by piece.
template <typename A>
class Scratch {
 public:
  Scratch(A* free, int64_t length, int64_t size) : free_(free), length_(length), size_(size) {}

  // Room for the rows of a head, without gaps.
  HeadRows<A> rows() { return {std::exchange(free_, free_ + length_ * size_), size_}; }
  A* rest() const { return free_; }
  HeadRows<const A> copy_of(HeadRows<const A> x) {
    const HeadRows<A> copy = rows();
    for (int64_t t = 0; t < length_; ++t) std::copy_n(x.row(t), size_, copy.row(t));
    return {copy.data, copy.stride};
  }
  HeadRows<A> zeroed_rows() {
    const HeadRows<A> zeroed = rows();
    std::fill_n(zeroed.data, length_ * size_, A(0));
    return zeroed;
  }
  void store(HeadRows<A> from, HeadRows<A> to, Store store) const {
    for (int64_t t = 0; t < length_; ++t) {
      if (store == Store::kOverwrite) {
        std::copy_n(from.row(t), size_, to.row(t));
      } else {
        std::transform(from.row(t), from.row(t) + size_, to.row(t), to.row(t), std::plus<A>());
      }
    }
  }

 private:
  A* free_;
  int64_t length_, size_;
};

template <typename A>
Scratch<A> scratch_of(const HeadInputs<A>& in, A* scratch) {
  return {scratch, static_cast<int64_t>(in.masks.ranges->size()), in.size};
}

template <typename A>
Matrix<const A> transposed(Matrix<const A> x) {
  return {x.data, x.stride, !x.transposed};
}

// to [rows, keys] = x[block's rows] y[block's keys]^T
template <typename A>
void products_of_rows(const Block& block, HeadRows<const A> x, HeadRows<const A> y, int64_t size,
                      A* to) {
  gemm({block.rows(), block.keys(), size}, rows_from(x, block.first),
       transposed(rows_from(y, block.first_key)), Matrix<A>{to, block.keys()}, Store::kOverwrite);
}

// Multiplies each row up to its own position by the dropout mask.
template <typename A>
void apply_dropout(const HeadMasks& masks, const Block& block, bool redrawn, A* rows) {
  const DropoutMask mask(*masks.dropout, masks.head, redrawn);
  for (int64_t t = block.first; t < block.end; ++t, rows += block.keys())
    mask.apply(rows, t + 1 - block.first_key, masks.sample, t, block.first_key);
}

// With M the dropout mask, O = (P . M) V: dP = (dO V^T) . M, and dV needs P . M. Turns d_weights
// (dO V^T) into dP and `kept` into P . M.
template <typename A>
void drop_again(const HeadMasks& masks, const Block& block, const A* weights, A* d_weights,
                A* kept) {
  std::fill_n(kept, block.elements(), A(1));
  apply_dropout(masks, block, /*redrawn=*/true, kept);
  for (int64_t i = 0; i < block.elements(); ++i) {
    d_weights[i] *= kept[i];
    kept[i] *= weights[i];
  }
}

}  // namespace

int64_t attention_scratch_elements(int64_t length, int64_t size) {
  return 7 * length * size + std::min(kAttentionBlock, length) * (3 * length + 1);
}

template <typename A>
void attention_head_forward(const HeadInputs<A>& in, HeadRows<A> output, A* log_sum, A* scratch) {
  Scratch<A> room = scratch_of(in, scratch);
  const HeadRows<const A> q = room.copy_of(in.q), k = room.copy_of(in.k), v = room.copy_of(in.v);
  const HeadRows<A> mixed = room.rows();
  A* const scores = room.rest();
  for_each_block(*in.masks.ranges, [&](const Block& block) {
    products_of_rows(block, q, k, in.size, scores);
    kernels::softmax_forward(scores, block.ranges.data(), block.rows(), block.keys(), in.scale,
                             log_sum + block.first);
    if (in.masks.dropout) apply_dropout(in.masks, block, /*redrawn=*/false, scores);
    gemm({block.rows(), in.size, block.keys()}, Matrix<const A>{scores, block.keys()},
         rows_from(v, block.first_key), rows_from(mixed, block.first), Store::kOverwrite);
  });
  room.store(mixed, output, Store::kOverwrite);
}

// The rows of dP . P sum to dO . O, with dropout too, so the softmax backward needs no further pass
// over the scores.
template <typename A>
void attention_head_backward(const HeadInputs<A>& in, HeadRows<const A> output,
                             HeadRows<const A> d_output, const A* log_sum,
                             const HeadGradients<A>& gradients, A* scratch) {
  Scratch<A> room = scratch_of(in, scratch);
  const HeadRows<const A> q = room.copy_of(in.q), k = room.copy_of(in.k), v = room.copy_of(in.v);
  const HeadRows<const A> d_mixed = room.copy_of(d_output);
  const HeadRows<A> d_q = room.rows(), d_k = room.zeroed_rows(), d_v = room.zeroed_rows();
  A* const row_dot = room.rest();
  for_each_block(*in.masks.ranges, [&](const Block& block) {
    A* const weights = row_dot + block.rows();
    A* const d_weights = weights + block.elements();
    A* const dropped = d_weights + block.elements();
    kernels::row_dots(d_output.row(block.first), output.row(block.first), block.rows(),
                      output.stride, in.size, row_dot);
    products_of_rows(block, q, k, in.size, weights);
    kernels::softmax_again(weights, block.ranges.data(), block.rows(), block.keys(), in.scale,
                           log_sum + block.first);
    products_of_rows(block, d_mixed, v, in.size, d_weights);
    const A* kept = weights;
    if (in.masks.dropout) {
      drop_again(in.masks, block, weights, d_weights, dropped);
      kept = dropped;
    }
    gemm({block.keys(), in.size, block.rows()}, Matrix<const A>{kept, block.keys(), true},
         rows_from(d_mixed, block.first), rows_from(d_v, block.first_key), Store::kAdd);
    kernels::softmax_backward(d_weights, weights, row_dot, block.rows(), block.keys(), in.scale);
    gemm({block.rows(), in.size, block.keys()}, Matrix<const A>{d_weights, block.keys()},
         rows_from(k, block.first_key), rows_from(d_q, block.first), Store::kOverwrite);
    gemm({block.keys(), in.size, block.rows()}, Matrix<const A>{d_weights, block.keys(), true},
         rows_from(q, block.first), rows_from(d_k, block.first_key), Store::kAdd);
  });
  room.store(d_q, gradients.q, Store::kOverwrite);
  room.store(d_k, gradients.k, gradients.group_store);
  room.store(d_v, gradients.v, gradients.group_store);
}

#define SEVENFOLD_INSTANTIATE(A)                                                                 \
  template void attention_head_forward<A>(const HeadInputs<A>&, HeadRows<A>, A*, A*);            \
  template void attention_head_backward<A>(const HeadInputs<A>&, HeadRows<const A>,              \
                                           HeadRows<const A>, const A*, const HeadGradients<A>&, \
                                           A*);
SEVENFOLD_INSTANTIATE(float)
SEVENFOLD_INSTANTIATE(double)
#undef SEVENFOLD_INSTANTIATE

}  // namespace sevenfold::internal

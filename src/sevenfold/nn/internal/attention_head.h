#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/nn/dropout.h"
#include "sevenfold/nn/internal/gemm.h"
#include "sevenfold/nn/kernels/softmax.h"

namespace sevenfold::internal {

// One head of one sample: T rows of `size` components, `stride` elements apart. A = float or
// double.
template <typename A>
struct HeadRows {
  A* data = nullptr;
  int64_t stride = 0;
  A* row(int64_t t) const { return data + t * stride; }
};

// What the rows of a head see.
struct HeadMasks {
  const std::vector<kernels::KeyRange>* ranges = nullptr;  // [T]: keys that query t sees
  const Dropout* dropout = nullptr;
  int64_t head = 0;  // counted from that of the dropout's site
  int64_t sample = 0;
};

template <typename A>
struct HeadInputs {
  HeadRows<const A> q, k, v;
  int64_t size = 0;  // components of a row
  A scale = A(1);
  HeadMasks masks;
};

// Elements of scratch that a head's passes need for `length` tokens of `size` components.
int64_t attention_scratch_elements(int64_t length, int64_t size);

// output = dropout(softmax(q k^T * scale)) v, log_sum [T], block by block of query rows: the scores
// of a block stay in the second-level cache from the product to the last use. The head is copied
// out of its tensors first: rows that lie a power of two apart share few sets of the first-level
// cache, and in a training step products on them took 148 ms where those on copies take 125. The
// copying costs about as much as that at 512 tokens; scores grow with the square of the length.
template <typename A>
void attention_head_forward(const HeadInputs<A>& inputs, HeadRows<A> output, A* log_sum,
                            A* scratch);

template <typename A>
struct HeadGradients {
  HeadRows<A> q, k, v;
  // How k and v are stored: the heads of a group share them, and all but the first add.
  Store group_store = Store::kAdd;
};

template <typename A>
void attention_head_backward(const HeadInputs<A>& inputs, HeadRows<const A> output,
                             HeadRows<const A> d_output, const A* log_sum,
                             const HeadGradients<A>& gradients, A* scratch);

}  // namespace sevenfold::internal

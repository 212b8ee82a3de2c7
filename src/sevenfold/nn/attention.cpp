#include "sevenfold/nn/attention.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>
#include <limits>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/internal/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

// Inside this file tensors are grouped by KV head: N = B * groups, R = heads / groups query heads
// per KV head. q and outputs [N, R, T, d], k and v [N, T, d]. One product then serves all query
// heads of a group.
at::Tensor group_queries(const at::Tensor& x, int64_t groups) {
  const int64_t b = x.size(0), t = x.size(1), heads = x.size(2), d = x.size(3);
  return x.view({b, t, groups, heads / groups, d})
      .permute({0, 2, 3, 1, 4})
      .contiguous()
      .view({b * groups, heads / groups, t, d});
}

at::Tensor ungroup_queries(const at::Tensor& x, int64_t batch) {
  const int64_t groups = x.size(0) / batch, r = x.size(1), t = x.size(2), d = x.size(3);
  return x.view({batch, groups, r, t, d})
      .permute({0, 3, 1, 2, 4})
      .contiguous()
      .view({batch, t, groups * r, d});
}

at::Tensor group_keys(const at::Tensor& x) {
  return x.permute({0, 2, 1, 3}).contiguous().view({x.size(0) * x.size(2), x.size(1), x.size(3)});
}

at::Tensor ungroup_keys(const at::Tensor& x, int64_t batch) {
  return x.view({batch, x.size(0) / batch, x.size(1), x.size(2)})
      .permute({0, 2, 1, 3})
      .contiguous();
}

// Query rows first .. end-1 against keys first_key .. end-1: what lies outside is seen by none of
// them.
struct Block {
  int64_t first;
  int64_t end;
  int64_t first_key;
  int64_t rows() const { return end - first; }
  int64_t keys() const { return end - first_key; }
};

// A device's tensor is not read here: its blocks begin at key 0, and the mask does the rest.
int64_t lowest_first_key(const AttentionMasks& masks, int64_t first, int64_t end) {
  if (!masks.first_key_BT.defined() || !masks.first_key_BT.is_cpu()) return 0;
  return masks.first_key_BT.narrow(1, first, end - first).min().item<int64_t>();
}

template <typename F>
void for_each_block(int64_t length, const AttentionMasks& masks, const F& body) {
  for (int64_t first = 0; first < length; first += kAttentionBlock) {
    const int64_t end = std::min(first + kAttentionBlock, length);
    body(Block{first, end, lowest_first_key(masks, first, end)});
  }
}

at::Tensor query_rows(const at::Tensor& x, Block block) {  // [N, R * rows, d]
  return x.narrow(2, block.first, block.rows())
      .reshape({x.size(0), x.size(1) * block.rows(), x.size(3)});
}

at::Tensor block_keys(const at::Tensor& x, Block block) {
  return x.narrow(1, block.first_key, block.keys());
}

// Keys before the document of their query, at minus infinity. scores [N, R, rows, keys].
void mask_other_documents(const at::Tensor& scores, Block block, const at::Tensor& first_key_BT) {
  const int64_t batch = first_key_BT.size(0);
  const at::Tensor keys = at::arange(block.first_key, block.end, first_key_BT.options());
  const at::Tensor hidden =
      keys.lt(first_key_BT.narrow(1, block.first, block.rows()).unsqueeze(-1));
  scores.view({batch, -1, block.rows(), block.keys()})
      .masked_fill_(hidden.unsqueeze(1), -std::numeric_limits<double>::infinity());
}

// Scaled scores of the block [N, R, rows, keys], what a row may not see at minus infinity.
at::Tensor block_scores(const at::Tensor& q, const at::Tensor& k, Block block, double scale,
                        const AttentionMasks& masks) {
  at::Tensor scores = at::bmm(query_rows(q, block), block_keys(k, block).transpose(1, 2));
  scores = scores.view({q.size(0), q.size(1), block.rows(), block.keys()}).mul_(scale);
  const at::Tensor future =
      at::full({block.rows(), block.rows()}, -std::numeric_limits<double>::infinity(), q.options())
          .triu_(1);
  scores.narrow(3, block.first - block.first_key, block.rows()).add_(future);
  if (masks.first_key_BT.defined()) mask_other_documents(scores, block, masks.first_key_BT);
  return scores;
}

// Multiplies by the dropout mask up to each row's own position; x [N, R, rows, keys] contiguous,
// which in memory is [B, heads, rows, keys].
void apply_dropout(const at::Tensor& x, Block block, const AttentionMasks& masks, bool redrawn) {
  const auto batch = static_cast<int64_t>(masks.sample_ids.size());
  const int64_t heads = x.size(0) * x.size(1) / batch;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "attention_dropout", [&] {
    for (int64_t head = 0; head < heads; ++head) {
      const DropoutMask mask(*masks.dropout, head, redrawn);
      for (int64_t b = 0; b < batch; ++b) {
        auto* row = x.data_ptr<scalar_t>() + (b * heads + head) * block.rows() * block.keys();
        for (int64_t t = block.first; t < block.end; ++t, row += block.keys())
          mask.apply(row, t + 1 - block.first_key, masks.sample_ids[static_cast<size_t>(b)], t,
                     block.first_key);
      }
    }
  });
}

struct Grouped {
  at::Tensor output;   // [N, R, T, d]
  at::Tensor log_sum;  // [N, R, T]
};

Grouped attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          double scale, const AttentionMasks& masks) {
  Grouped result{at::empty_like(q), at::empty({q.size(0), q.size(1), q.size(2)}, q.options())};
  for_each_block(q.size(2), masks, [&](Block block) {
    at::Tensor weights = block_scores(q, k, block, scale, masks);
    const at::Tensor largest = weights.amax(-1, /*keepdim=*/true);
    weights.sub_(largest).exp_();
    const at::Tensor sum = weights.sum(-1, /*keepdim=*/true);
    if (masks.dropout) apply_dropout(weights, block, masks, /*redrawn=*/false);
    const at::Tensor output =
        at::bmm(weights.view({q.size(0), q.size(1) * block.rows(), block.keys()}),
                block_keys(v, block))
            .view({q.size(0), q.size(1), block.rows(), q.size(3)})
            .div_(sum);
    result.output.narrow(2, block.first, block.rows()).copy_(output);
    result.log_sum.narrow(2, block.first, block.rows()).copy_((largest + sum.log()).squeeze(-1));
  });
  return result;
}

struct GroupedGradients {
  at::Tensor q, k, v;
};

// With M the dropout mask, O = (P . M) V: dV = (P . M)^T dO, dP = (dO V^T) . M, and the rows of
// dP . P still sum to dO . O, so the softmax backward needs no further pass over the scores.
GroupedGradients attention_backward(const at::Tensor& d_output, const at::Tensor& q,
                                    const at::Tensor& k, const at::Tensor& v,
                                    const Grouped& forward, double scale,
                                    const AttentionMasks& masks) {
  GroupedGradients gradients{at::empty_like(q), at::zeros_like(k), at::zeros_like(v)};
  const at::Tensor row_dot = (d_output * forward.output).sum(-1, /*keepdim=*/true);
  for_each_block(q.size(2), masks, [&](Block block) {
    const std::vector<int64_t> flat = {q.size(0), q.size(1) * block.rows(), block.keys()};
    const at::Tensor log_sum = forward.log_sum.narrow(2, block.first, block.rows()).unsqueeze(-1);
    const at::Tensor weights = block_scores(q, k, block, scale, masks).sub_(log_sum).exp_();
    const at::Tensor d_rows = query_rows(d_output, block);

    at::Tensor d_scores =
        at::bmm(d_rows, block_keys(v, block).transpose(1, 2)).view(weights.sizes());
    at::Tensor kept = weights;
    if (masks.dropout) {
      const at::Tensor mask = at::ones_like(weights);
      apply_dropout(mask, block, masks, /*redrawn=*/true);
      kept = weights * mask;
      d_scores.mul_(mask);
    }
    block_keys(gradients.v, block).baddbmm_(kept.view(flat).transpose(1, 2), d_rows);
    d_scores.sub_(row_dot.narrow(2, block.first, block.rows())).mul_(weights).mul_(scale);
    const at::Tensor d_flat = d_scores.view(flat);
    gradients.q.narrow(2, block.first, block.rows())
        .copy_(at::bmm(d_flat, block_keys(k, block))
                   .view({q.size(0), q.size(1), block.rows(), q.size(3)}));
    block_keys(gradients.k, block).baddbmm_(d_flat.transpose(1, 2), query_rows(q, block));
  });
  return gradients;
}

struct CausalAttentionFunction : torch::autograd::Function<CausalAttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, double scale, const AttentionMasks* masks) {
    const at::Tensor grouped_q = group_queries(q, k.size(2));
    const at::Tensor grouped_k = group_keys(k), grouped_v = group_keys(v);
    const Grouped result = attention_forward(grouped_q, grouped_k, grouped_v, scale, *masks);
    context->save_for_backward(
        {grouped_q, grouped_k, grouped_v, result.output, result.log_sum, masks->first_key_BT});
    context->saved_data["scale"] = scale;
    context->saved_data["batch"] = q.size(0);
    context->saved_data["dropout"] = reinterpret_cast<int64_t>(masks->dropout);
    context->saved_data["sample_ids"] = masks->sample_ids;
    return ungroup_queries(result.output, q.size(0));
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const AttentionMasks masks{
        saved[5], reinterpret_cast<const Dropout*>(context->saved_data["dropout"].toInt()),
        context->saved_data["sample_ids"].toIntVector()};
    const int64_t batch = context->saved_data["batch"].toInt();
    const at::Tensor d_output = group_queries(d_outputs[0].contiguous(), saved[1].size(0) / batch);
    const GroupedGradients gradients =
        attention_backward(d_output, saved[0], saved[1], saved[2], {saved[3], saved[4]},
                           context->saved_data["scale"].toDouble(), masks);
    return {ungroup_queries(gradients.q, batch), ungroup_keys(gradients.k, batch),
            ungroup_keys(gradients.v, batch), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double scale, const AttentionMasks& masks) {
  SEVENFOLD_CHECK(q.dim() == 4 && k.dim() == 4 && q.size(2) % k.size(2) == 0);
  SEVENFOLD_CHECK(!masks.dropout || static_cast<int64_t>(masks.sample_ids.size()) == q.size(0),
                  "{} sample ids for {} rows", masks.sample_ids.size(), q.size(0));
  return CausalAttentionFunction::apply(q, k, v, scale, &masks);
}

}  // namespace sevenfold

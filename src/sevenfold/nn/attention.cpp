#include "sevenfold/nn/attention.h"

#include <ATen/ATen.h>

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

struct Block {
  int64_t first;
  int64_t end;
  int64_t rows() const { return end - first; }
};

template <typename F>
void for_each_block(int64_t length, const F& body) {
  for (int64_t first = 0; first < length; first += kAttentionBlock)
    body(Block{first, std::min(first + kAttentionBlock, length)});
}

at::Tensor query_rows(const at::Tensor& x, Block block) {  // [N, R * rows, d]
  return x.narrow(2, block.first, block.rows())
      .reshape({x.size(0), x.size(1) * block.rows(), x.size(3)});
}

// Scaled scores of the block's rows against keys 0 .. block.end-1: [N, R, rows, block.end], the
// future at minus infinity.
at::Tensor block_scores(const at::Tensor& q, const at::Tensor& k, Block block, double scale) {
  at::Tensor scores = at::bmm(query_rows(q, block), k.narrow(1, 0, block.end).transpose(1, 2));
  scores = scores.view({q.size(0), q.size(1), block.rows(), block.end}).mul_(scale);
  const at::Tensor future =
      at::full({block.rows(), block.rows()}, -std::numeric_limits<double>::infinity(), q.options())
          .triu_(1);
  scores.narrow(3, block.first, block.rows()).add_(future);
  return scores;
}

struct Grouped {
  at::Tensor output;   // [N, R, T, d]
  at::Tensor log_sum;  // [N, R, T]
};

Grouped attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          double scale) {
  Grouped result{at::empty_like(q), at::empty({q.size(0), q.size(1), q.size(2)}, q.options())};
  for_each_block(q.size(2), [&](Block block) {
    at::Tensor weights = block_scores(q, k, block, scale);
    const at::Tensor largest = weights.amax(-1, /*keepdim=*/true);
    weights.sub_(largest).exp_();
    const at::Tensor sum = weights.sum(-1, /*keepdim=*/true);
    const at::Tensor output =
        at::bmm(weights.view({q.size(0), q.size(1) * block.rows(), block.end}),
                v.narrow(1, 0, block.end))
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

GroupedGradients attention_backward(const at::Tensor& d_output, const at::Tensor& q,
                                    const at::Tensor& k, const at::Tensor& v,
                                    const Grouped& forward, double scale) {
  GroupedGradients gradients{at::empty_like(q), at::zeros_like(k), at::zeros_like(v)};
  // Rows of dP . P sum to dO . O, so the softmax backward needs no further pass over the scores.
  const at::Tensor row_dot = (d_output * forward.output).sum(-1, /*keepdim=*/true);
  for_each_block(q.size(2), [&](Block block) {
    const std::vector<int64_t> flat = {q.size(0), q.size(1) * block.rows(), block.end};
    const at::Tensor log_sum = forward.log_sum.narrow(2, block.first, block.rows()).unsqueeze(-1);
    const at::Tensor weights = block_scores(q, k, block, scale).sub_(log_sum).exp_();
    const at::Tensor d_rows = query_rows(d_output, block);
    const at::Tensor keys = k.narrow(1, 0, block.end), values = v.narrow(1, 0, block.end);

    gradients.v.narrow(1, 0, block.end).baddbmm_(weights.view(flat).transpose(1, 2), d_rows);
    at::Tensor d_scores = at::bmm(d_rows, values.transpose(1, 2)).view(weights.sizes());
    d_scores.sub_(row_dot.narrow(2, block.first, block.rows())).mul_(weights).mul_(scale);
    const at::Tensor d_flat = d_scores.view(flat);
    gradients.q.narrow(2, block.first, block.rows())
        .copy_(at::bmm(d_flat, keys).view({q.size(0), q.size(1), block.rows(), q.size(3)}));
    gradients.k.narrow(1, 0, block.end).baddbmm_(d_flat.transpose(1, 2), query_rows(q, block));
  });
  return gradients;
}

struct CausalAttentionFunction : torch::autograd::Function<CausalAttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, double scale) {
    const at::Tensor grouped_q = group_queries(q, k.size(2));
    const at::Tensor grouped_k = group_keys(k), grouped_v = group_keys(v);
    const Grouped result = attention_forward(grouped_q, grouped_k, grouped_v, scale);
    context->save_for_backward({grouped_q, grouped_k, grouped_v, result.output, result.log_sum});
    context->saved_data["scale"] = scale;
    context->saved_data["batch"] = q.size(0);
    return ungroup_queries(result.output, q.size(0));
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const int64_t batch = context->saved_data["batch"].toInt();
    const at::Tensor d_output = group_queries(d_outputs[0].contiguous(), saved[1].size(0) / batch);
    const GroupedGradients gradients =
        attention_backward(d_output, saved[0], saved[1], saved[2], {saved[3], saved[4]},
                           context->saved_data["scale"].toDouble());
    return {ungroup_queries(gradients.q, batch), ungroup_keys(gradients.k, batch),
            ungroup_keys(gradients.v, batch), at::Tensor()};
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double scale) {
  SEVENFOLD_CHECK(q.dim() == 4 && k.dim() == 4 && q.size(2) % k.size(2) == 0);
  return CausalAttentionFunction::apply(q, k, v, scale);
}

}  // namespace sevenfold

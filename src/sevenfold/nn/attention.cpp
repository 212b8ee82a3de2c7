#include "sevenfold/nn/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/attention_head.h"
#include "sevenfold/nn/internal/elements.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::HeadInputs;
using internal::HeadRows;
using internal::variable_list;
using kernels::KeyRange;

// Queries, keys and values in the type of the arithmetic.
struct Attended {
  at::Tensor q, k, v;
  double scale = 1.0;

  int64_t batch() const { return q.size(0); }
  int64_t length() const { return q.size(1); }
  int64_t heads() const { return q.size(2); }
  int64_t groups() const { return k.size(2); }
};

at::Tensor widened(const at::Tensor& x) {
  return x.to(internal::wide_type(x.scalar_type())).contiguous();
}

template <typename A>
HeadRows<A> head_rows(const at::Tensor& x, int64_t sample, int64_t head) {  // x [B, T, heads, d]
  using Element = std::remove_const_t<A>;
  const int64_t stride = x.size(2) * x.size(3);
  return {elements<Element>(x) + sample * x.size(1) * stride + head * x.size(3), stride};
}

std::vector<KeyRange> key_ranges(const at::Tensor& first_key_BT, int64_t sample, int64_t length) {
  const int64_t* first = nullptr;
  if (first_key_BT.defined()) first = elements<int64_t>(first_key_BT) + sample * length;
  std::vector<KeyRange> ranges;
  for (int64_t t = 0; t < length; ++t) ranges.push_back({first ? first[t] : 0, t + 1});
  return ranges;
}

template <typename A>
HeadInputs<A> head_inputs(const Attended& in, const AttentionMasks& masks,
                          const std::vector<KeyRange>& ranges, int64_t sample, int64_t head) {
  const int64_t group = head / (in.heads() / in.groups());
  return {.q = head_rows<const A>(in.q, sample, head),
          .k = head_rows<const A>(in.k, sample, group),
          .v = head_rows<const A>(in.v, sample, group),
          .size = in.q.size(3),
          .scale = static_cast<A>(in.scale),
          .masks = {.ranges = &ranges,
                    .dropout = masks.dropout,
                    .head = head,
                    .sample = masks.dropout ? masks.sample_ids[static_cast<size_t>(sample)] : 0}};
}

// Calls body(inputs, sample, head, scratch) for every head of every sample. The heads of a group
// run on one thread, in order: they add to the same gradients.
template <typename A, typename Body>
void for_each_head(const Attended& in, const AttentionMasks& masks, const Body& body) {
  const int64_t heads_of_group = in.heads() / in.groups();
  const at::Tensor scratch = at::empty(
      {at::get_num_threads(), internal::attention_scratch_elements(in.length(), in.q.size(3))},
      in.q.options());
  at::parallel_for(0, in.batch() * in.groups(), 1, [&](int64_t begin, int64_t end) {
    A* own = elements<A>(scratch) + at::get_thread_num() * scratch.size(1);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / in.groups(), group = i % in.groups();
      const std::vector<KeyRange> ranges = key_ranges(masks.first_key_BT, sample, in.length());
      for (int64_t head = group * heads_of_group; head < (group + 1) * heads_of_group; ++head)
        body(head_inputs<A>(in, masks, ranges, sample, head), sample, head, own);
    }
  });
}

struct Result {
  at::Tensor output;   // [B, T, heads, d]
  at::Tensor log_sum;  // [B, heads, T]
};

template <typename A>
A* log_sum_of(const Result& result, int64_t sample, int64_t head) {
  const at::Tensor& all = result.log_sum;
  return elements<A>(all) + (sample * all.size(1) + head) * all.size(2);
}

template <typename A>
Result attention_forward(const Attended& in, const AttentionMasks& masks) {
  const Result result{at::empty_like(in.q),
                      at::empty({in.batch(), in.heads(), in.length()}, in.q.options())};
  for_each_head<A>(
      in, masks, [&](const HeadInputs<A>& inputs, int64_t sample, int64_t head, A* scratch) {
        internal::attention_head_forward<A>(inputs, head_rows<A>(result.output, sample, head),
                                            log_sum_of<A>(result, sample, head), scratch);
      });
  return result;
}

struct Gradients {
  at::Tensor q, k, v;
};

template <typename A>
Gradients attention_backward(const Attended& in, const AttentionMasks& masks, const Result& result,
                             const at::Tensor& d_output) {
  const Gradients gradients{at::empty_like(in.q), at::empty_like(in.k), at::empty_like(in.v)};
  for_each_head<A>(
      in, masks, [&](const HeadInputs<A>& inputs, int64_t sample, int64_t head, A* scratch) {
        const int64_t heads_of_group = in.heads() / in.groups();
        const int64_t group = head / heads_of_group;
        internal::attention_head_backward<A>(
            inputs, head_rows<const A>(result.output, sample, head),
            head_rows<const A>(d_output, sample, head), log_sum_of<A>(result, sample, head),
            {.q = head_rows<A>(gradients.q, sample, head),
             .k = head_rows<A>(gradients.k, sample, group),
             .v = head_rows<A>(gradients.v, sample, group),
             .group_store =
                 head % heads_of_group == 0 ? internal::Store::kOverwrite : internal::Store::kAdd},
            scratch);
      });
  return gradients;
}

// Calls run(A{}) with the type of the arithmetic.
template <typename Run>
auto with_wide_type(const at::Tensor& x, const Run& run) {
  return x.scalar_type() == at::kDouble ? run(double{}) : run(float{});
}

struct CausalAttentionFunction : torch::autograd::Function<CausalAttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, double scale, const AttentionMasks* masks,
                            AttentionKeeps keeps) {
    const at::Tensor first_key =
        masks->first_key_BT.defined() ? masks->first_key_BT.contiguous() : at::Tensor();
    const AttentionMasks own{first_key, masks->dropout, masks->sample_ids};
    const Attended in{widened(q), widened(k), widened(v), scale};
    const Result result = run_forward(in, own);
    const at::Tensor output = result.output.to(q.scalar_type());
    if (keeps == AttentionKeeps::kResult)
      context->save_for_backward({q, k, v, first_key, output, result.log_sum});
    else
      context->save_for_backward({q, k, v, first_key});
    context->saved_data["scale"] = scale;
    context->saved_data["dropout"] = reinterpret_cast<int64_t>(masks->dropout);
    context->saved_data["sample_ids"] = masks->sample_ids;
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const AttentionMasks masks{
        saved[3], reinterpret_cast<const Dropout*>(context->saved_data["dropout"].toInt()),
        context->saved_data["sample_ids"].toIntVector()};
    const Attended in{widened(saved[0]), widened(saved[1]), widened(saved[2]),
                      context->saved_data["scale"].toDouble()};
    Result result =
        saved.size() > 4 ? Result{saved[4], saved[5]} : run_forward(in, drawn_again(masks));
    // Rounded as the output was, whether kept or computed again.
    result.output = widened(result.output.to(saved[0].scalar_type()));
    const at::Tensor d_output = widened(d_outputs[0]);
    const Gradients gradients = with_wide_type(
        in.q, [&]<typename A>(A) { return attention_backward<A>(in, masks, result, d_output); });
    const at::ScalarType type = saved[0].scalar_type();
    return {gradients.q.to(type), gradients.k.to(type), gradients.v.to(type),
            at::Tensor(),         at::Tensor(),         at::Tensor()};
  }

 private:
  // The masks of the first forward; with a planted fault, others.
  static AttentionMasks drawn_again(AttentionMasks masks) {
    if (masks.dropout && masks.dropout->faults.has(Fault::kRecomputeDropoutRedrawn))
      for (int64_t& sample : masks.sample_ids) ++sample;
    return masks;
  }
  static Result run_forward(const Attended& in, const AttentionMasks& masks) {
    return with_wide_type(in.q, [&]<typename A>(A) { return attention_forward<A>(in, masks); });
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double scale, const AttentionMasks& masks, AttentionKeeps keeps) {
  SEVENFOLD_CHECK(q.dim() == 4 && k.dim() == 4 && q.size(2) % k.size(2) == 0);
  SEVENFOLD_CHECK(!masks.dropout || static_cast<int64_t>(masks.sample_ids.size()) == q.size(0),
                  "{} sample ids for {} rows", masks.sample_ids.size(), q.size(0));
  return CausalAttentionFunction::apply(q, k, v, scale, &masks, keeps);
}

}  // namespace sevenfold

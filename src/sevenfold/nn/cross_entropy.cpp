#include "sevenfold/nn/cross_entropy.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/internal/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, const at::Tensor& mask) {
    const at::Tensor column = labels.unsqueeze(1);
    const at::Tensor picked = logits.gather(1, column);
    const at::Tensor largest = logits.amax(1, /*keepdim=*/true);
    const at::Tensor weights = (logits - largest).exp_();
    const at::Tensor sum = weights.sum(1, /*keepdim=*/true);
    const at::Tensor losses = (largest - picked).add_(sum.log()).squeeze(1).mul_(mask);
    weights.div_(sum);  // softmax, kept instead of the logits
    context->save_for_backward({weights, column, mask});
    return losses.sum(at::kDouble);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &softmax = saved[0], &column = saved[1], &mask = saved[2];
    // Each row of d_logits = seed * mask * (softmax - one hot label).
    const at::Tensor scale = (mask * d_outputs[0].to(mask.scalar_type())).unsqueeze(1);
    const at::Tensor d_logits = softmax * scale;
    d_logits.scatter_add_(1, column, scale.neg());
    return {d_logits, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             const at::Tensor& mask) {
  return CrossEntropyFunction::apply(logits, labels, mask);
}

}  // namespace sevenfold

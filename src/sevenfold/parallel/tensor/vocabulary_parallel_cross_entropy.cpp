#include "sevenfold/parallel/tensor/vocabulary_parallel_cross_entropy.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/cross_entropy.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, const at::Tensor& mask,
                            const TensorParallel* tensor, int64_t padded_rows) {
    const at::Tensor largest = row_maxima(logits);
    tensor->group->all_reduce_max(largest).wait();
    const at::Tensor sums = exponential_sums(logits, labels, largest);
    if (padded_rows > 0 && tensor->rank() == 0)
      sums.select(0, 0).add_(largest.to(at::kDouble).neg().exp() * padded_rows);
    tensor->group->all_reduce(sums).wait();
    const at::Tensor inverse_sum = sums.select(0, 0).reciprocal().to(largest.scalar_type());
    context->save_for_backward({logits, labels, mask, largest, inverse_sum});
    const at::Tensor losses = largest.to(at::kDouble) - sums.select(0, 1) + sums.select(0, 0).log();
    return losses.dot(mask.to(at::kDouble));
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &mask = saved[2];
    const at::Tensor scale = mask * d_outputs[0].to(mask.scalar_type());
    const at::Tensor d_logits = logits.is_leaf() ? at::empty_like(logits) : logits.detach();
    write_logit_gradient(d_logits, logits, saved[1], {saved[3], saved[4], scale});
    return {d_logits, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor vocabulary_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                             const at::Tensor& mask, int64_t first_row,
                                             const TensorParallel& tensor, int64_t padded_rows) {
  return CrossEntropyFunction::apply(logits, labels - first_row, mask, &tensor, padded_rows);
}

}  // namespace sevenfold

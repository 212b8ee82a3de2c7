#include "sevenfold/nn/cross_entropy.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::variable_list;

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, const at::Tensor& mask) {
    const at::TensorOptions fp64 = logits.options().dtype(at::kDouble);
    const at::Tensor losses = at::empty({logits.size(0)}, fp64);
    const at::Tensor largest = at::empty({logits.size(0)}, mask.options());
    const at::Tensor inverse_sum = at::empty_like(largest);
    internal::with_element_type(logits.scalar_type(), [&]<typename T>(T) {
      kernels::cross_entropy_forward<T>(elements<T>(logits), elements<int64_t>(labels),
                                        elements<double>(losses), elements<Wide<T>>(largest),
                                        elements<Wide<T>>(inverse_sum), logits.size(0),
                                        logits.size(1));
    });
    // A caller's own variable is not overwritten.
    context->saved_data["in_place"] = !logits.is_leaf();
    context->save_for_backward({logits, labels, mask, largest, inverse_sum});
    return losses.dot(mask.to(at::kDouble));
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &mask = saved[2];
    const at::Tensor scale = mask * d_outputs[0].to(mask.scalar_type());
    const bool in_place = context->saved_data["in_place"].toBool();
    const at::Tensor d_logits = in_place ? logits.detach() : at::empty_like(logits);
    write_logit_gradient(d_logits, logits, saved[1], {saved[3], saved[4], scale});
    return {d_logits, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor row_maxima(const at::Tensor& logits) {
  const at::Tensor largest = at::empty(
      {logits.size(0)}, logits.options().dtype(internal::wide_type(logits.scalar_type())));
  internal::with_element_type(logits.scalar_type(), [&]<typename T>(T) {
    kernels::row_maxima<T>(elements<T>(logits), elements<Wide<T>>(largest), logits.size(0),
                           logits.size(1));
  });
  return largest;
}

at::Tensor exponential_sums(const at::Tensor& logits, const at::Tensor& labels,
                            const at::Tensor& largest) {
  const at::Tensor sums = at::empty({2, logits.size(0)}, logits.options().dtype(at::kDouble));
  internal::with_element_type(logits.scalar_type(), [&]<typename T>(T) {
    kernels::exponential_sums<T>(elements<T>(logits), elements<int64_t>(labels),
                                 elements<Wide<T>>(largest), elements<double>(sums), logits.size(0),
                                 logits.size(1));
  });
  return sums;
}

void write_logit_gradient(const at::Tensor& d_logits, const at::Tensor& logits,
                          const at::Tensor& labels, const SoftmaxRows& rows) {
  internal::with_element_type(logits.scalar_type(), [&]<typename T>(T) {
    kernels::cross_entropy_backward<T>(
        elements<T>(logits), elements<int64_t>(labels), elements<Wide<T>>(rows.largest),
        elements<Wide<T>>(rows.inverse_sum), elements<Wide<T>>(rows.scale), elements<T>(d_logits),
        logits.size(0), logits.size(1));
  });
}

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             const at::Tensor& mask) {
  SEVENFOLD_CHECK(logits.dim() == 2 && labels.numel() == logits.size(0) &&
                  mask.numel() == logits.size(0));
  SEVENFOLD_CHECK(mask.scalar_type() == internal::wide_type(logits.scalar_type()));
  return CrossEntropyFunction::apply(logits.contiguous(), labels.contiguous(), mask.contiguous());
}

}  // namespace sevenfold

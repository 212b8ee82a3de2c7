#include "sevenfold/nn/embedding.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/internal/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::variable_list;

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& anchor,
                            const at::Tensor& tokens, const Parameter* table) {
    context->save_for_backward({anchor, tokens});
    internal::save_pointer(context, "table", *table);
    const at::Tensor rows = table->weight().index_select(0, tokens.reshape(-1));
    return rows.view({tokens.size(0), tokens.size(1), table->weight().size(1)});
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& table = internal::saved_pointer<const Parameter>(context, "table");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& gradient = table.gradient();
    const at::Tensor tokens = saved[1].contiguous(), d_rows = d_outputs[0].contiguous();
    internal::with_element_type(d_rows.scalar_type(), [&]<typename T>(T) {
      kernels::add_rows<T>(elements<T>(d_rows), elements<int64_t>(tokens),
                           elements<Wide<T>>(gradient), tokens.numel(), gradient.size(1));
    });
    return {at::zeros_like(saved[0]), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& tokens, const at::Tensor& anchor, const Parameter& table) {
  return EmbeddingFunction::apply(anchor, tokens, &table);
}

}  // namespace sevenfold

#include "sevenfold/nn/embedding.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/internal/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
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
    at::Tensor gradient = table.gradient();
    gradient.index_add_(0, saved[1].reshape(-1), d_outputs[0].reshape({-1, gradient.size(1)}));
    return {at::zeros_like(saved[0]), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& tokens, const at::Tensor& anchor, const Parameter& table) {
  return EmbeddingFunction::apply(anchor, tokens, &table);
}

}  // namespace sevenfold

#include "sevenfold/nn/position_embedding.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/autograd.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

struct PositionEmbeddingFunction : torch::autograd::Function<PositionEmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Parameter* table,
                            const at::Tensor* positions, int64_t first) {
    context->save_for_backward({*positions});
    context->saved_data["first"] = first;
    internal::save_pointer(context, "table", *table);
    const at::Tensor& rows = table->weight();
    if (!positions->defined()) return x + rows.narrow(0, first, x.size(1));
    return x + rows.index_select(0, positions->reshape(-1)).view(x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& table = internal::saved_pointer<const Parameter>(context, "table");
    const at::Tensor positions = context->get_saved_variables()[0];
    const at::Tensor& dy = d_outputs[0];
    at::Tensor gradient = table.gradient();
    if (positions.defined()) {
      gradient.index_add_(0, positions.reshape(-1),
                          dy.reshape({-1, dy.size(2)}).to(gradient.scalar_type()));
    } else {
      gradient.narrow(0, context->saved_data["first"].toInt(), dy.size(1))
          .add_(dy.sum(0, false, gradient.scalar_type()));
    }
    return {dy, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor add_position_embedding(const at::Tensor& x, const Parameter& table,
                                  const at::Tensor& positions, int64_t first) {
  SEVENFOLD_CHECK(first + x.size(1) <= table.weight().size(0), "{} tokens from {}, {} positions",
                  x.size(1), first, table.weight().size(0));
  return PositionEmbeddingFunction::apply(x, &table, &positions, first);
}

}  // namespace sevenfold

#include "sevenfold/nn/embedding.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::variable_list;

kernels::TableRows rows_of(const at::Tensor& index, const at::Tensor& table) {
  return {elements<int64_t>(index), index.numel(), table.size(0), table.size(1)};
}

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& anchor,
                            const at::Tensor& index, const Parameter* parameter) {
    context->save_for_backward({anchor, index});
    internal::save_pointer(context, "table", *parameter);
    const at::Tensor& table = parameter->weight();
    const at::Tensor rows =
        at::empty({index.size(0), index.size(1), table.size(1)}, table.options());
    internal::with_element_type(table.scalar_type(), [&]<typename T>(T) {
      kernels::take_rows<T>(elements<T>(table), rows_of(index, table), elements<T>(rows));
    });
    return rows;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& table = internal::saved_pointer<const Parameter>(context, "table");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor d_rows = d_outputs[0].contiguous();
    internal::with_element_type(d_rows.scalar_type(), [&]<typename T>(T) {
      kernels::add_rows<T>(elements<T>(d_rows), rows_of(saved[1], table.gradient()),
                           elements<Wide<T>>(table.gradient()));
    });
    return {at::zeros_like(saved[0]), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& tokens, const at::Tensor& anchor, const Parameter& table,
                     int64_t first_row) {
  const int64_t vocabulary = table.spec().global_shape[0];
  SEVENFOLD_CHECK(tokens.numel() == 0 || (tokens.min().item<int64_t>() >= 0 &&
                                          tokens.max().item<int64_t>() < vocabulary),
                  "tokens {} to {} of a vocabulary of {}", tokens.min().item<int64_t>(),
                  tokens.max().item<int64_t>(), vocabulary);
  const at::Tensor index = first_row == 0 ? tokens.contiguous() : tokens - first_row;
  return EmbeddingFunction::apply(anchor, index, &table);
}

}  // namespace sevenfold

#include "sevenfold/nn/weight_gradients.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/internal/products.h"

namespace sevenfold {

void WeightGradients::add(const Parameter& parameter, const at::Tensor& d_output,
                          const at::Tensor& input) {
  const Product product{&parameter, d_output, input};
  if (part_ == BackwardPart::kFull) {
    accumulate(product);
  } else {
    queued_[microbatch_].push_back(product);
  }
}

void WeightGradients::run(int64_t microbatch) {
  const auto found = queued_.find(microbatch);
  SEVENFOLD_CHECK(found != queued_.end(), "no weight gradients are queued for micro batch {}",
                  microbatch);
  for (const Product& product : found->second) accumulate(product);
  queued_.erase(found);
}

void WeightGradients::accumulate(const Product& product) {
  const at::NoGradGuard no_graph;  // run() is called outside a backward pass
  at::Tensor gradient = product.parameter->gradient();
  if (faults_.has(Fault::kAccumulationOverwrites)) gradient.zero_();
  // A table that a linear layer reads is a tied one.
  if (faults_.has(Fault::kTiedGradientDropped) &&
      product.parameter->kind() == ParameterKind::kTable)
    return;
  internal::add_product(gradient, product.d_output.t(), product.input);
}

}  // namespace sevenfold

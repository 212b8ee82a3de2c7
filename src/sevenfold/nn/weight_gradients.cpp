#include "sevenfold/nn/weight_gradients.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/internal/products.h"

namespace sevenfold {

void WeightGradients::begin(int64_t microbatch, BackwardPart part) {
  microbatch_ = microbatch;
  part_ = part;
  if (!is_deferring()) return;
  const bool is_first = queued_.try_emplace(microbatch).second;
  SEVENFOLD_CHECK(is_first, "weight gradients of micro batch {} are queued already", microbatch);
}

void WeightGradients::add(const std::vector<Parameter*>& parameters,
                          std::vector<at::Tensor> d_outputs, InputSource input) {
  SEVENFOLD_CHECK_EQ(parameters.size(), d_outputs.size());
  Products products{parameters, std::move(d_outputs), std::move(input)};
  if (is_deferring()) {
    queued_[microbatch_][layer_].push_back(std::move(products));
  } else {
    run(products);
  }
}

void WeightGradients::run(int64_t microbatch, int64_t layer) {
  const auto found = queued_.find(microbatch);
  SEVENFOLD_CHECK(found != queued_.end(), "no weight gradients are queued for micro batch {}",
                  microbatch);
  const bool is_dropped = faults_.has(Fault::kQueuedWeightGradientsDropped) && microbatch == 0;
  if (!is_dropped)
    for (const Products& products : found->second[layer]) run(products);
  found->second.erase(layer);
}

void WeightGradients::end(int64_t microbatch) {
  const auto found = queued_.find(microbatch);
  SEVENFOLD_CHECK(found != queued_.end() && found->second.empty(),
                  "weight gradients of micro batch {} are left", microbatch);
  queued_.erase(found);
}

void WeightGradients::run(const Products& products) const {
  const at::NoGradGuard no_graph;  // also called outside a backward pass
  const at::Tensor input = products.input();
  for (size_t i = 0; i < products.parameters.size(); ++i)
    accumulate(*products.parameters[i], products.d_outputs[i], input);
}

void WeightGradients::accumulate(const Parameter& parameter, const at::Tensor& d_output,
                                 const at::Tensor& input) const {
  at::Tensor gradient = parameter.gradient();
  if (faults_.has(Fault::kAccumulationOverwrites)) gradient.zero_();
  // A table that a linear layer reads is a tied one.
  if (faults_.has(Fault::kTiedGradientDropped) && parameter.kind() == ParameterKind::kTable) return;
  internal::add_product(gradient, d_output.t(), input);
}

}  // namespace sevenfold

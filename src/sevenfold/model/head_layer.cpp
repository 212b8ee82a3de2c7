#include "sevenfold/model/head_layer.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/cross_entropy.h"
#include "sevenfold/parallel/tensor/placement.h"
#include "sevenfold/parallel/tensor/vocabulary_parallel_cross_entropy.h"

namespace sevenfold {
namespace {

int64_t padded_rows(const ModelConfig& config, const TensorParallel& tensor) {
  return tensor.faults.has(Fault::kPaddedRowsInSoftmax)
             ? config.padded_vocab_size - config.vocab_size
             : 0;
}

}  // namespace

HeadLayer::HeadLayer(const ModelConfig& config, const ModelOptions& options,
                     ParameterList& parameters, Parameter* tied_table)
    : Layer(config.num_layers + 1),
      tensor_(options.tensor),
      first_row_(first_vocabulary_row(config.vocab_size, options.tensor)),
      padded_rows_(padded_rows(config, options.tensor)),
      norm_(parameters.norm("model.norm", config.hidden_size, config, NormPlace::kHiddenState)),
      table_(options.tensor) {
  table_.add({.weight = tied_table ? tied_table
                                   : parameters.vocabulary_table(
                                         "lm_head.weight", ParameterKind::kMatrix,
                                         {config.vocab_size, config.hidden_size})});
}

LayerOutput HeadLayer::forward(const LayerInput& input) const {
  const Microbatch& microbatch = *input.microbatch;
  const at::Tensor x_BTD = norm_(input.boundary.hidden_BTD);
  const at::Tensor logits_NV = table_(x_BTD, *input.weight_gradients)[0];
  return {.boundary = {}, .losses = {{loss_sum(logits_NV, microbatch), microbatch.loss_seed}}};
}

at::Tensor HeadLayer::loss_sum(const at::Tensor& logits_NV, const Microbatch& microbatch) const {
  const at::Tensor labels = microbatch.labels_BT.reshape(-1);
  const at::Tensor mask = microbatch.mask_BT.reshape(-1);
  if (!tensor_.is_split()) return cross_entropy_sum(logits_NV, labels, mask);
  return vocabulary_parallel_cross_entropy(logits_NV, labels, mask, first_row_, tensor_,
                                           padded_rows_);
}

std::vector<Parameter*> HeadLayer::parameters() const {
  std::vector<Parameter*> list;
  norm_.list_parameters(list);
  table_.list_parameters(list);
  return list;
}

}  // namespace sevenfold

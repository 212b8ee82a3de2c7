#include "sevenfold/model/head_layer.h"

#include <ATen/ATen.h>

#include "sevenfold/nn/cross_entropy.h"
#include "sevenfold/nn/linear.h"

namespace sevenfold {

HeadLayer::HeadLayer(const ModelConfig& config, ParameterList& parameters, Parameter* tied_table)
    : norm_(parameters.norm("model.norm", config.hidden_size, config)),
      table_(tied_table ? tied_table
                        : parameters.add("lm_head.weight", ParameterKind::kMatrix,
                                         {config.vocab_size, config.hidden_size})) {}

LayerOutput HeadLayer::forward(const LayerInput& input) const {
  const Microbatch& microbatch = *input.microbatch;
  const at::Tensor& x_BTD = input.boundary.hidden_BTD;
  const at::Tensor x_ND = norm_(x_BTD).view({-1, x_BTD.size(2)});
  const at::Tensor logits_NV = linear(x_ND, *table_, *input.weight_gradients);
  const at::Tensor loss = cross_entropy_sum(logits_NV, microbatch.labels_BT.reshape(-1),
                                            microbatch.mask_BT.reshape(-1));
  return {.boundary = {}, .losses = {{loss, microbatch.loss_seed}}};
}

std::vector<Parameter*> HeadLayer::parameters() const {
  std::vector<Parameter*> list;
  norm_.list_parameters(list);
  list.push_back(table_);
  return list;
}

}  // namespace sevenfold

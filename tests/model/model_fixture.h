#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "sevenfold/model/model.h"
#include "sevenfold/param/start_values.h"

namespace sevenfold::testing {

// M0 of the field cases: a Llama of 43,616 parameters.
inline ModelConfig m0() {
  return {.num_layers = 4,
          .hidden_size = 32,
          .ffn_hidden_size = 64,
          .num_attention_heads = 4,
          .num_query_groups = 2,
          .kv_channels = 8,
          .vocab_size = 101,
          .seq_length = 32,
          .max_position_embeddings = 64};
}

// G0 of the goldens: a GPT of 55,136 parameters.
inline ModelConfig g0() {
  ModelConfig config = m0();
  config.ffn_hidden_size = 128;
  config.num_query_groups = 4;
  config.max_position_embeddings = 32;
  config.tied_embeddings = true;
  config.norm = NormKind::kLayerNorm;
  config.positions = PositionKind::kLearned;
  config.activation = Activation::kGelu;
  config.linear_bias = true;
  return config;
}

// Two rows of five tokens of a vocabulary of 7, one label untrained.
inline Microbatch small_microbatch() {
  const at::TensorOptions fp64 = at::TensorOptions(at::kDouble);
  Microbatch microbatch;
  microbatch.inputs_BT = at::tensor({3, 0, 6, 2, 2, 1, 5, 4, 0, 3}, at::kLong).view({2, 5});
  microbatch.labels_BT = at::tensor({0, 6, 2, 2, 1, 5, 4, 0, 3, 3}, at::kLong).view({2, 5});
  microbatch.mask_BT = at::ones({2, 5}, fp64);
  microbatch.mask_BT.select(1, 3).zero_();
  microbatch.loss_seed = at::ones({}, fp64);
  microbatch.sample_ids = {12, 40};
  return microbatch;
}

// One decoder layer of the kind of `config`, small enough for finite differences.
inline ModelConfig small(ModelConfig config) {
  config.num_layers = 1;
  config.hidden_size = 12;
  config.kv_channels = 4;
  config.num_attention_heads = 4;
  config.ffn_hidden_size = 10;
  config.vocab_size = 7;
  config.seq_length = 5;
  config.max_position_embeddings = 6;
  return config;
}

// A model whose parameters each have storage of their own and hot start weights, in fp64; its
// layers run one at a time.
class BoundModel {
 public:
  explicit BoundModel(const ModelConfig& config, ModelOptions options = {.dtype = at::kDouble})
      : part_(build_model(config, options)) {
    for (const auto& parameter : part_.parameters) {
      const std::vector<int64_t>& shape = parameter->spec().global_shape;
      const at::Tensor weight = at::zeros(shape, at::TensorOptions(at::kDouble));
      parameter->bind(weight, at::zeros_like(weight));
      fill_start_values(*parameter, {.kind = StartKind::kHot},
                        {std::vector<int64_t>(shape.size(), 0), shape});
    }
  }

  // layer 0: embedding, then the decoder layers and the head.
  LayerOutput run(size_t layer, const at::Tensor& hidden, const Microbatch& microbatch) {
    return part_.layers[layer]->forward({.boundary = {hidden},
                                         .anchor = anchor_,
                                         .microbatch = &microbatch,
                                         .weight_gradients = &gradients_});
  }
  // Sum of the token losses.
  double loss(const Microbatch& microbatch) {
    const at::NoGradGuard no_graph;
    LayerOutput output;
    for (size_t layer = 0; layer < part_.layers.size(); ++layer)
      output = run(layer, output.boundary.hidden_BTD, microbatch);
    return output.losses[0].value.item<double>();
  }
  std::vector<Parameter*> parameters(size_t layer) const {
    return part_.layers[layer]->parameters();
  }
  // A weight by the end of its name.
  at::Tensor weight(const std::string& name) const {
    for (const auto& parameter : part_.parameters)
      if (parameter->name().ends_with(name)) return parameter->weight();
    return {};
  }

 private:
  ModelPart part_;
  WeightGradients gradients_;
  at::Tensor anchor_ = at::zeros({1}, at::TensorOptions(at::kDouble)).set_requires_grad(true);
};

}  // namespace sevenfold::testing

#include "sevenfold/model/embedding_layer.h"

#include "sevenfold/nn/embedding.h"
#include "sevenfold/nn/position_embedding.h"

namespace sevenfold {

EmbeddingLayer::EmbeddingLayer(const ModelConfig& config, const ModelOptions& options,
                               ParameterList& parameters)
    : tokens_(parameters.add("model.embed_tokens.weight", ParameterKind::kTable,
                             {config.vocab_size, config.hidden_size})),
      dropout_(config.hidden_dropout, RandomOperation::kEmbeddingDropout, 0, options) {
  if (config.positions == PositionKind::kLearned)
    positions_ = parameters.add("model.embed_positions.weight", ParameterKind::kTable,
                                {config.max_position_embeddings, config.hidden_size});
}

LayerOutput EmbeddingLayer::forward(const LayerInput& input) const {
  const Microbatch& microbatch = *input.microbatch;
  at::Tensor x_BTD = embedding(microbatch.inputs_BT, input.anchor, *tokens_);
  if (positions_) x_BTD = add_position_embedding(x_BTD, *positions_, microbatch.positions_BT);
  return {.boundary = {dropout_(x_BTD, microbatch)}, .losses = {}};
}

std::vector<Parameter*> EmbeddingLayer::parameters() const {
  if (positions_) return {tokens_, positions_};
  return {tokens_};
}

}  // namespace sevenfold

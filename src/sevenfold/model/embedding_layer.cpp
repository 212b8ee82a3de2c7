#include "sevenfold/model/embedding_layer.h"

#include "sevenfold/nn/embedding.h"
#include "sevenfold/nn/position_embedding.h"
#include "sevenfold/parallel/sequence/sequence_parallel_linear.h"
#include "sevenfold/parallel/sequence/sequence_shards.h"
#include "sevenfold/parallel/tensor/placement.h"
#include "sevenfold/parallel/tensor/row_parallel_linear.h"

namespace sevenfold {

EmbeddingLayer::EmbeddingLayer(const ModelConfig& config, const ModelOptions& options,
                               ParameterList& parameters, Parameter* tied_table)
    : Layer(0),
      tensor_(options.tensor),
      first_row_(first_vocabulary_row(config.vocab_size, options.tensor)),
      tokens_(tied_table ? tied_table : declare_table(config, parameters)),
      dropout_(config.hidden_dropout, RandomOperation::kEmbeddingDropout, 0, options) {
  if (config.positions == PositionKind::kLearned)
    positions_ = parameters.whole_table("model.embed_positions.weight",
                                        {config.max_position_embeddings, config.hidden_size});
}

Parameter* EmbeddingLayer::declare_table(const ModelConfig& config, ParameterList& parameters) {
  return parameters.vocabulary_table("model.embed_tokens.weight", ParameterKind::kTable,
                                     {config.vocab_size, config.hidden_size});
}

LayerOutput EmbeddingLayer::forward(const LayerInput& input) const {
  const Microbatch& microbatch = *input.microbatch;
  at::Tensor x_BTD = look_up(input);
  if (positions_) x_BTD = add_positions(x_BTD, microbatch);
  return {.boundary = {dropout_(x_BTD, microbatch)}, .losses = {}};
}

at::Tensor EmbeddingLayer::look_up(const LayerInput& input) const {
  const at::Tensor rows_BTD =
      embedding(input.microbatch->inputs_BT, input.anchor, *tokens_, first_row_);
  return tensor_.splits_sequence() ? reduce_scatter_to_sp(rows_BTD, tensor_)
                                   : reduce_from_tp(rows_BTD, tensor_);
}

at::Tensor EmbeddingLayer::add_positions(const at::Tensor& x_BTD,
                                         const Microbatch& microbatch) const {
  const int64_t length = x_BTD.size(1);
  const int64_t first = tensor_.splits_sequence() ? first_position(length, tensor_) : 0;
  at::Tensor positions_BT = microbatch.positions_BT;
  if (positions_BT.defined()) positions_BT = positions_BT.narrow(1, first, length);
  return add_position_embedding(x_BTD, *positions_, positions_BT, first);
}

std::vector<Parameter*> EmbeddingLayer::parameters() const {
  if (positions_) return {tokens_, positions_};
  return {tokens_};
}

}  // namespace sevenfold

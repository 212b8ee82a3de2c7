#pragma once

#include <vector>

#include "sevenfold/model/layer_dropout.h"
#include "sevenfold/model/parameter_list.h"

namespace sevenfold {

// Token table, learned positions if the model has them, dropout.
class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const ModelConfig& config, const ModelOptions& options, ParameterList& parameters);

  LayerOutput forward(const LayerInput& input) const override;
  std::vector<Parameter*> parameters() const override;
  Parameter* token_table() const { return tokens_; }

 private:
  Parameter* tokens_;
  Parameter* positions_ = nullptr;
  LayerDropout dropout_;
};

}  // namespace sevenfold

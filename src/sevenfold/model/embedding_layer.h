#pragma once

#include <vector>

#include "sevenfold/model/layer_dropout.h"
#include "sevenfold/model/parameter_list.h"

namespace sevenfold {

// Token table (cut by its rows over the tensor-parallel ranks), learned positions if the model has
// them, dropout.
class EmbeddingLayer final : public Layer {
 public:
  // tied_table: where head and embedding have one, see declare_table; else null.
  EmbeddingLayer(const ModelConfig& config, const ModelOptions& options, ParameterList& parameters,
                 Parameter* tied_table);
  // The table of tokens, added to the list.
  static Parameter* declare_table(const ModelConfig& config, ParameterList& parameters);

  LayerOutput forward(const LayerInput& input) const override;
  std::vector<Parameter*> parameters() const override;

 private:
  // Rows of the table, summed over the ranks that hold them: [B, T, D], or this rank's part.
  at::Tensor look_up(const LayerInput& input) const;
  at::Tensor add_positions(const at::Tensor& x_BTD, const Microbatch& microbatch) const;

  TensorParallel tensor_;
  int64_t first_row_;  // of the vocabulary
  Parameter* tokens_;
  Parameter* positions_ = nullptr;
  LayerDropout dropout_;
};

}  // namespace sevenfold

#pragma once

#include <vector>

#include "sevenfold/model/model_options.h"
#include "sevenfold/model/parameter_list.h"
#include "sevenfold/model/projection.h"
#include "sevenfold/nn/layer.h"

namespace sevenfold {

// Final norm, output table (cut by its rows over the tensor-parallel ranks) and loss.
class HeadLayer final : public Layer {
 public:
  // tied_table: the embedding's, where the model ties them; else null, and the head has its own.
  HeadLayer(const ModelConfig& config, const ModelOptions& options, ParameterList& parameters,
            Parameter* tied_table);

  LayerOutput forward(const LayerInput& input) const override;
  std::vector<Parameter*> parameters() const override;

 private:
  at::Tensor loss_sum(const at::Tensor& logits_NV, const Microbatch& microbatch) const;

  TensorParallel tensor_;
  int64_t first_row_;    // of the vocabulary
  int64_t padded_rows_;  // that a planted fault lets into the softmax
  Norm norm_;
  ColumnProjections table_;
};

}  // namespace sevenfold

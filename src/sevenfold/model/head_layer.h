#pragma once

#include <vector>

#include "sevenfold/model/parameter_list.h"
#include "sevenfold/nn/layer.h"

namespace sevenfold {

// Final norm, output table and loss.
class HeadLayer final : public Layer {
 public:
  // tied_table: the embedding's, where the model ties them; else null, and the head has its own.
  HeadLayer(const ModelConfig& config, ParameterList& parameters, Parameter* tied_table);

  LayerOutput forward(const LayerInput& input) const override;
  std::vector<Parameter*> parameters() const override;

 private:
  Norm norm_;
  Parameter* table_;
};

}  // namespace sevenfold

#pragma once

#include <string>
#include <vector>

#include "sevenfold/model/model_options.h"
#include "sevenfold/model/parameter_list.h"
#include "sevenfold/model/projection.h"

namespace sevenfold {

// down(activation(gate(x)) * up(x)), or without a gate down(activation(up(x))). Tensor parallel:
// each rank has its columns of gate and up and the rows of down that they meet.
class FeedForward {
 public:
  FeedForward(const ModelConfig& config, const ModelOptions& options, const std::string& name,
              ParameterList& parameters);

  // again: as in ColumnProjections.
  at::Tensor operator()(const at::Tensor& x_BTD, WeightGradients& gradients,
                        const WeightGradients::InputSource& again = {}) const;
  void list_parameters(std::vector<Parameter*>& list) const;

 private:
  at::Tensor activate_wide(const std::vector<at::Tensor>& wide) const;

  Activation activation_;
  bool recomputes_activation_;
  ColumnProjections wide_;  // gate and up, or up alone
  RowProjection down_;
};

}  // namespace sevenfold

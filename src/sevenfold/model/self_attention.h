#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sevenfold/model/layer_dropout.h"
#include "sevenfold/model/parameter_list.h"
#include "sevenfold/model/projection.h"
#include "sevenfold/nn/attention.h"
#include "sevenfold/nn/rotary.h"

namespace sevenfold {

// Projections, norms of q and k and rotary positions if the model has them, causal attention with
// dropout, output projection. Tensor parallel: each rank has heads / n heads and the groups of keys
// and values that they read.
class SelfAttention {
 public:
  // rotary: null for models without. layer: of the whole model.
  SelfAttention(const ModelConfig& config, const ModelOptions& options, int64_t layer,
                const std::string& name, ParameterList& parameters,
                std::shared_ptr<const RotaryTable> rotary);

  // again: as in ColumnProjections.
  at::Tensor operator()(const at::Tensor& x_BTD, const LayerInput& input,
                        const WeightGradients::InputSource& again = {}) const;
  void list_parameters(std::vector<Parameter*>& list) const;

 private:
  // [B T, heads * head size] -> [B, T, heads, head size]
  at::Tensor split_heads(const at::Tensor& x, int64_t num_samples) const;
  at::Tensor place(const at::Tensor& x, const Norm& norm, const Microbatch& microbatch) const;
  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const Microbatch& microbatch) const;

  int64_t head_size_;
  AttentionKeeps keeps_;
  ColumnProjections qkv_;
  RowProjection o_;
  Norm q_norm_, k_norm_;  // without a gain: none
  std::shared_ptr<const RotaryTable> rotary_;
  LayerDropout dropout_;
};

}  // namespace sevenfold

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sevenfold/model/feed_forward.h"
#include "sevenfold/model/self_attention.h"

namespace sevenfold {

// h = x + dropout(attention(norm(x))), y = h + dropout(feed_forward(norm(h))). Backward computes
// the parts that options.recompute names again.
class DecoderLayer final : public Layer {
 public:
  // layer: of the whole model. rotary: one table for all layers, null for models without.
  DecoderLayer(const ModelConfig& config, const ModelOptions& options, int64_t layer,
               ParameterList& parameters, std::shared_ptr<const RotaryTable> rotary);

  LayerOutput forward(const LayerInput& input) const override;
  std::vector<Parameter*> parameters() const override;

 private:
  DecoderLayer(const ModelConfig& config, const ModelOptions& options, int64_t layer,
               const std::string& name, ParameterList& parameters,
               std::shared_ptr<const RotaryTable> rotary);

  at::Tensor attend(const LayerInput& input) const;
  at::Tensor feed_forward(const at::Tensor& h_BTD, WeightGradients& gradients) const;
  // What gives norm(x) in backward where norms are recomputed; else nothing.
  WeightGradients::InputSource norm_again(const Norm& norm, const at::Tensor& x_BTD) const;

  RecomputeConfig recompute_;
  // In the order in which they declare their parameters.
  Norm input_norm_;
  SelfAttention attention_;
  Norm attention_norm_;
  FeedForward feed_forward_;
  LayerDropout attention_dropout_;
  LayerDropout feed_forward_dropout_;
};

}  // namespace sevenfold

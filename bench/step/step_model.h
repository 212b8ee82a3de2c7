#pragma once

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/sample_source.h"

namespace sevenfold::bench {

// The model and the run that step_model.py builds too: Llama with hidden size 512, 8 layers, 8
// heads, feed-forward 1408, vocabulary 8192, sequences of 512, micro batch 2, AdamW, hot start.
Config step_config(Precision precision);

// Made-up tokens, the same in step_model.py.
class StepTokens final : public SampleSource {
 public:
  explicit StepTokens(const ModelConfig& model) : model_(model) {}
  int64_t seq_length() const override { return model_.seq_length; }
  int64_t num_samples() const override { return 1 << 20; }
  void read(int64_t index, std::span<int64_t> tokens) const override;

 private:
  const ModelConfig& model_;
};

// Floating-point operations of the matrix products of one step: forward and both backward products
// of every linear layer, and the seven of attention (two forward, five backward) over the blocks
// that are computed.
double step_product_flops(const Config& config);

}  // namespace sevenfold::bench

#pragma once

#include <memory>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/model/model_options.h"
#include "sevenfold/nn/layer.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// A part of a model: its layers in order and the parameters that they read. Layers point to the
// parameters.
struct ModelPart {
  std::vector<std::unique_ptr<Parameter>> parameters;  // canonical names (proof.md), in model order
  std::vector<std::unique_ptr<Layer>> layers;          // embedding, decoder layers, head

  // Parameters of each layer, for the buckets.
  std::vector<std::vector<Parameter*>> layer_parameters() const;
  std::vector<Parameter*> all_parameters() const;
};

// The dense decoder that ModelConfig describes, pre-norm throughout: GPT (LayerNorm, learned
// positions, GELU, biases), Llama (RMSNorm, rotary positions, SwiGLU), Qwen2.5 (Llama with biases
// on q, k, v), Qwen3 (Llama with norms on q and k) and what lies between. Parameters have no
// storage yet (build_buckets binds it). Formulas and sources in docs/model.md.
ModelPart build_model(const ModelConfig& config, const ModelOptions& options);

// Number of logical parameters of the model.
int64_t num_parameters(const ModelConfig& config);
// Number of those that the fullest of `tp` tensor-parallel ranks holds.
int64_t max_local_parameters(const ModelConfig& config, int64_t tp);

}  // namespace sevenfold

#pragma once

#include <memory>
#include <vector>

#include "sevenfold/config/config.h"
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

// Llama: pre-norm decoder with RMSNorm, rotary positions, grouped-query attention and SwiGLU; the
// output table is tied to the embedding or not. Parameters have no storage yet (build_buckets binds
// it). Source: Touvron et al. 2023; formulas in docs/model.md.
ModelPart build_llama(const ModelConfig& config, at::ScalarType dtype);

// Number of logical parameters of the model.
int64_t num_parameters(const ModelConfig& config);

}  // namespace sevenfold

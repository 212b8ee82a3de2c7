#pragma once

#include <memory>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/model/model_options.h"
#include "sevenfold/nn/layer.h"
#include "sevenfold/param/flat_storage.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// A part of a model: its layers in order and the parameters that they read. Layers point to the
// parameters.
struct ModelPart {
  // Canonical names (proof.md), in model order, without a tied table that an earlier part of the
  // rank has.
  std::vector<std::unique_ptr<Parameter>> parameters;
  std::vector<std::unique_ptr<Layer>> layers;  // embedding, decoder layers, head

  // Parameters of each layer, for the buckets.
  std::vector<std::vector<Parameter*>> layer_parameters() const;
  std::vector<Parameter*> all_parameters() const;
};

// The same of all parts of a rank, one after the other.
std::vector<std::vector<Parameter*>> layer_parameters_of(const std::vector<ModelPart>& parts);
std::vector<Parameter*> parameters_of(const std::vector<ModelPart>& parts);
// The layers of each part in that list.
std::vector<LayerRange> layer_ranges(const std::vector<ModelPart>& parts);

// The dense decoder that ModelConfig describes, pre-norm throughout: GPT (LayerNorm, learned
// positions, GELU, biases), Llama (RMSNorm, rotary positions, SwiGLU), Qwen2.5 (Llama with biases
// on q, k, v), Qwen3 (Llama with norms on q and k) and what lies between. Parameters have no
// storage yet (build_buckets binds it). Formulas and sources in docs/model.md.
ModelPart build_model(const ModelConfig& config, const ModelOptions& options);

// A pipeline stage of the model on a rank.
struct ModelStage {
  StageLayers layers;
  std::vector<int64_t> owners = {0};  // pipeline ranks that hold it, ascending
  // Those that hold a tied table: owners of the first or of the last stage.
  std::vector<int64_t> table_owners = {0};
};

// The same model cut: a part for each of the stages that one rank holds, in the order of the model.
// Two parts of a rank share a tied table. A part without layers hands on what it gets.
std::vector<ModelPart> build_stages(const ModelConfig& config, const ModelOptions& options,
                                    const std::vector<ModelStage>& stages);

// Number of logical parameters of the model.
int64_t num_parameters(const ModelConfig& config);
// Number of those that the fullest of `tp` tensor-parallel ranks holds.
int64_t max_local_parameters(const ModelConfig& config, int64_t tp);
// The same of one stage of the model, by itself.
int64_t max_local_parameters(const ModelConfig& config, int64_t tp, const StageLayers& stage);

}  // namespace sevenfold

#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "sevenfold/model/model.h"
#include "sevenfold/param/flat_storage.h"
#include "sevenfold/param/start_values.h"
#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/pipeline/executor.h"

namespace sevenfold::testing {

// A communicator over two ranks that does nothing but tell `on_all_reduce` about each call: what a
// rank does can be watched without the other.
class WatchedGroup final : public Communicator {
 public:
  explicit WatchedGroup(std::function<void(const at::Tensor&)> on_all_reduce)
      : on_all_reduce_(std::move(on_all_reduce)) {}
  const std::string& name() const override { return name_; }
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  Work all_reduce(at::Tensor tensor) override {
    on_all_reduce_(tensor);
    return {};
  }
  Work all_reduce_max(at::Tensor) override { return {}; }
  Work reduce_scatter(at::Tensor, at::Tensor, std::vector<int64_t>) override { return {}; }
  Work all_gather(at::Tensor, at::Tensor, std::vector<int64_t>) override { return {}; }
  Work all_to_all(at::Tensor, at::Tensor, std::vector<int64_t>, std::vector<int64_t>) override {
    return {};
  }
  Work broadcast(at::Tensor, int64_t) override { return {}; }
  Work exchange(std::vector<Message>, std::vector<Message>) override { return {}; }
  void barrier() override {}

 private:
  std::string name_ = "dp-cp";
  std::function<void(const at::Tensor&)> on_all_reduce_;
};

// One rank's Llama of a few decoder layers in fp64 with hot start weights, a bucket per layer.
struct SmallLlama {
  static void ignore(const at::Tensor&) {}
  explicit SmallLlama(std::function<void(const at::Tensor&)> on_all_reduce = ignore,
                      int64_t num_layers = 3, const RecomputeConfig& recompute = {}) {
    rank.mesh = &mesh;
    rank.coordinates = mesh.coordinates(0);
    rank.groups["dp-cp"] = std::make_unique<WatchedGroup>(std::move(on_all_reduce));
    part = build_model(config(num_layers), {.dtype = at::kDouble, .recompute = recompute});
    buckets = build_buckets(part.layer_parameters(), rank, at::kDouble, 1);
    for (const auto& parameter : part.parameters)
      fill_start_values(*parameter, {.kind = StartKind::kHot},
                        local_slice(parameter->spec(), mesh, rank.coordinates));
    reducer = std::make_unique<GradientReducer>(buckets, rank);
    weights = std::make_unique<LayerWeights>(buckets, rank);
    chunk = std::make_unique<Chunk>(
        part.layers, *weights, *reducer, FaultSet(),
        recomputation_plan(recompute, {.position = 1, .first_id = 0, .count = num_layers}));
  }

  static ModelConfig config(int64_t num_layers, bool tied = false) {
    return {.num_layers = num_layers,
            .hidden_size = 8,
            .ffn_hidden_size = 12,
            .num_attention_heads = 2,
            .num_query_groups = 1,
            .kv_channels = 4,
            .vocab_size = 11,
            .seq_length = 6,
            .tied_embeddings = tied};
  }

  static Microbatch microbatch(int64_t index) {
    const at::TensorOptions fp64 = at::TensorOptions().dtype(at::kDouble);
    Microbatch result;
    result.index = index;
    result.inputs_BT = (at::arange(12, at::kLong) * (3 + index) % 11).view({2, 6});
    result.labels_BT = (at::arange(12, at::kLong) * (5 + index) % 11).view({2, 6});
    result.mask_BT = at::ones({2, 6}, fp64);
    result.trained_tokens = 12;
    result.loss_seed = at::full({}, 1.0 / 24, fp64);
    return result;
  }

  PipelineRank pipeline_rank() {
    return {.chunks = {chunk.get()}, .reducer = reducer.get(), .rank = &rank, .dtype = at::kDouble};
  }

  at::Tensor all_gradients() const {
    std::vector<at::Tensor> flat;
    for (const Bucket& bucket : buckets) flat.push_back(bucket.gradients);
    return at::cat(flat);
  }

  Mesh mesh{MeshShape{}};
  RankContext rank;
  ModelPart part;
  std::vector<Bucket> buckets;
  std::unique_ptr<GradientReducer> reducer;
  std::unique_ptr<LayerWeights> weights;
  std::unique_ptr<Chunk> chunk;
};

}  // namespace sevenfold::testing

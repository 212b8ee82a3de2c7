#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sevenfold/nn/layer.h"
#include "sevenfold/parallel/data/gradient_reducer.h"
#include "sevenfold/parallel/data/layer_weights.h"
#include "sevenfold/parallel/tensor/input_share.h"
#include "sevenfold/pipeline/recomputation.h"

namespace sevenfold {

// One layer of one micro batch between its forward and its backward: detached inputs and the
// graph's roots; where backward runs the layer again, at most the inputs.
class Segment {
 public:
  // Runs the layer; the graph starts at the detached inputs.
  LayerOutput forward(const Layer& layer, const LayerInput& input);
  // Runs the layer and keeps no activations; its input if keeps_input, or of that this rank's share
  // where the members of `sharers` (null: none) have the same.
  LayerOutput forward_without_graph(const Layer& layer, const LayerInput& input, bool keeps_input,
                                    Communicator* sharers = nullptr);
  bool has_graph() const { return has_graph_; }
  // The input that was kept, whole. Collective over those who share it.
  Boundary input() const;
  // Runs the graph from its roots: the outputs with `d_output`, and the losses with their seeds.
  void backward(const Boundary& d_output);
  // Gradient of the detached inputs; undefined where the layer's input is integers.
  Boundary input_gradients() const;

 private:
  Boundary input_;
  std::optional<InputShare> share_;  // of the hidden state, in its place
  at::Tensor anchor_;
  LayerOutput output_;
  bool has_graph_ = false;
};

// A list of layers that runs forward and backward one layer's graph at a time. Belongs to one rank.
// Without layers it hands on what it gets.
class Chunk {
 public:
  // Layers, weights (of their buckets) and reducer outlive the chunk. input_sharers: ranks that
  // keep a share each of the inputs of recomputed layers; null: every rank keeps them whole.
  // first_layer: number of its first layer on the rank, as weights and reducer count.
  Chunk(const std::vector<std::unique_ptr<Layer>>& layers, LayerWeights& weights,
        GradientReducer& reducer, FaultSet faults, RecomputationPlan recomputation = {},
        Communicator* input_sharers = nullptr, int64_t first_layer = 0);

  // Keeps a segment per layer until backward (of recomputed layers, the input of each group).
  // Returns what the next stage gets, and adds the sum of token losses to loss_sum().
  Boundary forward(const Microbatch& microbatch, Boundary boundary);
  // Walks the layers down; recomputed ones run forward again first. gradients_complete: what this
  // adds to weight gradients can be reduced, layer by layer (no later row of the schedule adds to
  // them, or they are reduced in every micro batch). Returns the gradient for the stage before.
  Boundary backward(const Microbatch& microbatch, Boundary d_output, BackwardPart part,
                    bool gradients_complete);
  // The weight gradients that backward with kInputOnly left.
  void backward_weights(const Microbatch& microbatch, bool gradients_complete);
  // Forward without keeping anything.
  struct Evaluation {
    Boundary boundary;    // what the next stage gets
    at::Tensor loss_sum;  // sum of the token losses, fp64 scalar
  };
  Evaluation evaluate(const Microbatch& microbatch, Boundary boundary);

  // Sum of token losses of the forwards since the last reset, fp64 scalar.
  const at::Tensor& loss_sum() const { return loss_sum_; }
  void reset_loss();
  // True when nothing is kept for a backward pass: the state between steps.
  bool idle() const { return segments_.empty() && weight_gradients_.empty(); }
  // Micro batches whose activations are kept, for B, W or both.
  int64_t num_microbatches_kept() const {
    return static_cast<int64_t>(segments_.size()) + weight_gradients_.num_queued();
  }
  // Drops all of it: for a step that ends early.
  void abandon();

 private:
  LayerRange layers_of_rank() const {
    return {first_layer_, first_layer_ + static_cast<int64_t>(layers_.size())};
  }
  // Of a layer of the chunk, among those of the rank.
  int64_t number_of(size_t layer) const { return first_layer_ + static_cast<int64_t>(layer); }
  // Its weights; `next`: the layer of the chunk that comes after it.
  void acquire(size_t layer, std::optional<size_t> next);
  void release(size_t layer, LayerPass pass);
  LayerInput input_of_layer(const Boundary& boundary, const Microbatch& microbatch);
  // Builds the graphs of the recomputed layers from the start of the group to its end, `last`,
  // whose weights stay acquired.
  void run_forward_again(std::vector<Segment>& segments, size_t last, const Microbatch& microbatch);

  std::optional<size_t> layer_after(size_t layer) const;
  // What backward turns to after `layer`: the one below, or the first of those to run forward
  // again.
  std::optional<size_t> layer_before(size_t layer, const std::vector<Segment>& segments) const;

  const std::vector<std::unique_ptr<Layer>>& layers_;
  LayerWeights& weights_;
  GradientReducer& reducer_;
  RecomputationPlan recomputation_;
  Communicator* input_sharers_;
  int64_t first_layer_;
  WeightGradients weight_gradients_;
  std::map<int64_t, std::vector<Segment>> segments_;  // by micro batch, one per layer
  at::Tensor loss_sum_;
};

}  // namespace sevenfold

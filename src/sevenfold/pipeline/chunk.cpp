#include "sevenfold/pipeline/chunk.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/ledger.h"

namespace sevenfold {
namespace {

at::Tensor fresh_leaf(const at::Tensor& value) {
  at::Tensor leaf = value.detach();
  leaf.set_requires_grad(true);
  return leaf;
}

}  // namespace

LayerOutput Segment::forward(const Layer& layer, const LayerInput& input) {
  LayerInput detached = input;
  if (input.boundary.hidden_BTD.defined()) {
    detached.boundary.hidden_BTD = input_.hidden_BTD = fresh_leaf(input.boundary.hidden_BTD);
    share_.reset();
  } else {
    detached.anchor = anchor_ = fresh_leaf(at::zeros({1}, input.microbatch->mask_BT.options()));
  }
  output_ = layer.forward(detached);
  has_graph_ = true;
  return output_;
}

LayerOutput Segment::forward_without_graph(const Layer& layer, const LayerInput& input,
                                           bool keeps_input, Communicator* sharers) {
  const at::NoGradGuard no_graph;
  LayerInput detached = input;
  if (input.boundary.hidden_BTD.defined()) {
    detached.boundary.hidden_BTD = input.boundary.hidden_BTD.detach();
    if (keeps_input) {
      input_ = detached.boundary;
      if (sharers) share_.emplace(std::exchange(input_.hidden_BTD, {}), *sharers);
    }
  } else {
    detached.anchor = at::zeros({1}, input.microbatch->mask_BT.options());
  }
  return layer.forward(detached);
}

Boundary Segment::input() const {
  Boundary input = input_;
  if (share_) input.hidden_BTD = share_->whole();
  return input;
}

void Segment::backward(const Boundary& d_output) {
  std::vector<at::Tensor> roots, seeds;
  if (output_.boundary.hidden_BTD.defined()) {
    roots.push_back(output_.boundary.hidden_BTD);
    seeds.push_back(d_output.hidden_BTD);
  }
  for (const LossRoot& loss : output_.losses) {
    roots.push_back(loss.value);
    seeds.push_back(loss.seed);
  }
  torch::autograd::backward(roots, seeds);
}

Boundary Segment::input_gradients() const {
  return {input_.hidden_BTD.defined() ? input_.hidden_BTD.grad() : at::Tensor()};
}

Chunk::Chunk(const std::vector<std::unique_ptr<Layer>>& layers, LayerWeights& weights,
             GradientReducer& reducer, FaultSet faults, RecomputationPlan recomputation,
             Communicator* input_sharers, int64_t first_layer)
    : layers_(layers),
      weights_(weights),
      reducer_(reducer),
      recomputation_(std::move(recomputation)),
      input_sharers_(input_sharers),
      first_layer_(first_layer),
      weight_gradients_(faults) {
  recomputation_.resize(layers_.size());
  reset_loss();
}

void Chunk::reset_loss() {
  loss_sum_ = at::zeros({}, at::TensorOptions().dtype(at::kDouble));
}

Boundary Chunk::forward(const Microbatch& microbatch, Boundary boundary) {
  const auto [kept, is_first] = segments_.try_emplace(microbatch.index, layers_.size());
  SEVENFOLD_CHECK(is_first, "micro batch {} ran forward already", microbatch.index);
  std::vector<Segment>& segments = kept->second;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const MomentScope moment(layers_[i]->index());
    const LayerInput input = input_of_layer(boundary, microbatch);
    const std::optional<size_t> again_from = recomputation_[i];
    acquire(i, layer_after(i));
    const LayerOutput output = again_from ? segments[i].forward_without_graph(
                                                *layers_[i], input, again_from == i, input_sharers_)
                                          : segments[i].forward(*layers_[i], input);
    release(i, LayerPass::kForward);
    for (const LossRoot& loss : output.losses) loss_sum_ = loss_sum_ + loss.value.detach();
    boundary = output.boundary;
  }
  return {boundary.hidden_BTD.defined() ? boundary.hidden_BTD.detach() : at::Tensor()};
}

Boundary Chunk::backward(const Microbatch& microbatch, Boundary d_output, BackwardPart part,
                         bool gradients_complete) {
  const auto kept = segments_.find(microbatch.index);
  SEVENFOLD_CHECK(kept != segments_.end(), "micro batch {} has not run forward", microbatch.index);
  std::vector<Segment>& segments = kept->second;
  weight_gradients_.begin(microbatch.index, part);
  reducer_.begin_backward(layers_of_rank());
  for (size_t i = layers_.size(); i-- > 0;) {
    const MomentScope moment(layers_[i]->index());
    if (!segments[i].has_graph()) run_forward_again(segments, i, microbatch);
    acquire(i, layer_before(i, segments));
    weight_gradients_.begin_layer(static_cast<int64_t>(i));
    segments[i].backward(d_output);
    release(i, LayerPass::kBackward);
    d_output = segments[i].input_gradients();
    segments.pop_back();  // frees the layer's activations
    if (gradients_complete) reducer_.layer_complete(number_of(i), part);
  }
  segments_.erase(kept);
  return d_output;
}

LayerInput Chunk::input_of_layer(const Boundary& boundary, const Microbatch& microbatch) {
  return {.boundary = boundary,
          .anchor = {},
          .microbatch = &microbatch,
          .weight_gradients = &weight_gradients_};
}

// Losses were counted when the layers first ran.
void Chunk::run_forward_again(std::vector<Segment>& segments, size_t last,
                              const Microbatch& microbatch) {
  Microbatch again = microbatch;
  if (weight_gradients_.faults().has(Fault::kRecomputeDropoutRedrawn))
    for (int64_t& sample : again.sample_ids) ++sample;
  const size_t first = recomputation_[last].value();
  Boundary boundary = segments[first].input();
  for (size_t i = first; i <= last; ++i) {
    acquire(i, i < last ? layer_after(i) : std::nullopt);
    boundary = segments[i].forward(*layers_[i], input_of_layer(boundary, again)).boundary;
    if (i < last) release(i, LayerPass::kBackward);
  }
}

// Products of activations and their gradients: no weights are read.
void Chunk::backward_weights(const Microbatch& microbatch, bool gradients_complete) {
  reducer_.begin_backward(layers_of_rank());
  for (size_t i = layers_.size(); i-- > 0;) {
    weight_gradients_.run(microbatch.index, static_cast<int64_t>(i));
    if (gradients_complete) reducer_.layer_complete(number_of(i), BackwardPart::kWeightOnly);
  }
  weight_gradients_.end(microbatch.index);
}

void Chunk::acquire(size_t layer, std::optional<size_t> next) {
  const auto first = static_cast<size_t>(first_layer_);
  weights_.acquire(first + layer, next ? std::optional(first + *next) : std::nullopt);
}

void Chunk::release(size_t layer, LayerPass pass) {
  weights_.release(static_cast<size_t>(first_layer_) + layer, pass);
}

std::optional<size_t> Chunk::layer_after(size_t layer) const {
  return layer + 1 < layers_.size() ? std::optional(layer + 1) : std::nullopt;
}

std::optional<size_t> Chunk::layer_before(size_t layer,
                                          const std::vector<Segment>& segments) const {
  if (layer == 0) return std::nullopt;
  return segments[layer - 1].has_graph() ? layer - 1 : recomputation_[layer - 1].value();
}

void Chunk::abandon() {
  segments_.clear();
  weight_gradients_.clear();
}

Chunk::Evaluation Chunk::evaluate(const Microbatch& microbatch, Boundary boundary) {
  const at::NoGradGuard no_graph;
  at::Tensor sum = at::zeros({}, at::TensorOptions().dtype(at::kDouble));
  LayerInput input{.boundary = std::move(boundary),
                   .anchor = at::zeros({1}, microbatch.mask_BT.options()),
                   .microbatch = &microbatch,
                   .weight_gradients = &weight_gradients_};
  for (size_t i = 0; i < layers_.size(); ++i) {
    acquire(i, layer_after(i));
    const LayerOutput output = layers_[i]->forward(input);
    release(i, LayerPass::kEvaluation);
    for (const LossRoot& loss : output.losses) sum = sum + loss.value;
    input.boundary = output.boundary;
  }
  return {input.boundary, sum};
}

}  // namespace sevenfold

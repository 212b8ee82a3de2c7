#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// One micro batch as a rank reads it, made before a sequence is cut. B samples of T tokens.
struct Microbatch {
  int64_t index = 0;     // within the step, on this rank
  at::Tensor inputs_BT;  // int64
  at::Tensor labels_BT;  // int64
  at::Tensor mask_BT;    // fp32, fp64 in fp64 runs: 1 trained, 0 not
  int64_t trained_tokens = 0;
  at::Tensor loss_seed;     // fp64 scalar: 1 / (unmasked tokens of the global batch)
  at::Tensor positions_BT;  // int64; undefined: 0 .. T-1 in every row
  // int64: the first position that a query may see (of its document); undefined: 0, plain causal.
  at::Tensor first_key_BT;
  // Of each row: its place in the endless stream of consumed samples, the counter of dropout.
  std::vector<int64_t> sample_ids;
  bool is_training = true;  // false: no dropout
};

// What passes between layers, and between stages.
struct Boundary {
  // Undefined before the embedding and after the head; with sequence parallelism this rank's part.
  at::Tensor hidden_BTD;
};

// A value that the objective adds up, with the gradient that seeds its backward pass: the loss, and
// later auxiliary terms, are roots of the same backward.
struct LossRoot {
  at::Tensor value;  // fp64 scalar
  at::Tensor seed;
};

struct LayerOutput {
  Boundary boundary;
  std::vector<LossRoot> losses;
};

struct LayerInput {
  Boundary boundary;
  // [1], requires a gradient: what a layer whose input is integers hangs its graph on.
  at::Tensor anchor;
  const Microbatch* microbatch = nullptr;
  WeightGradients* weight_gradients = nullptr;
};

// A piece of the model that runs forward in one go and backward in one go. Of the
// ranks it knows its tensor-parallel group only.
class Layer {
 public:
  // index: place in the whole model, the embedding's 0, decoder layers' from 1 on, the head's last.
  explicit Layer(int64_t index = 0) : index_(index) {}
  virtual ~Layer() = default;
  virtual LayerOutput forward(const LayerInput& input) const = 0;
  // The parameters that this layer reads; a tied table is listed by both of its users.
  virtual std::vector<Parameter*> parameters() const = 0;
  int64_t index() const { return index_; }

 private:
  int64_t index_;
};

}  // namespace sevenfold

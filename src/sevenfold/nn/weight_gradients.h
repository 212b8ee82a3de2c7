#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sevenfold/core/faults.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// What a backward pass computes: everything, or input gradients now (and what comes with them:
// norms, biases, tables) and the weight gradients of linear layers when the schedule says W.
enum class BackwardPart : uint8_t { kFull, kInputOnly, kWeightOnly };

// Where the weight gradients of linear layers go: summed into the parameter at once, or queued per
// micro batch and layer of the chunk. One per rank and chunk; used by the rank's thread (a graph's
// nodes hold a pointer to it).
class WeightGradients {
 public:
  explicit WeightGradients(FaultSet faults = {}) : faults_(faults) {}

  // Says what the linear layers of the backward pass that follows do, and then layer by layer whose
  // they are. With kInputOnly the micro batch waits for run() and end() from here on, even if no
  // layer queues anything.
  void begin(int64_t microbatch, BackwardPart part);
  void begin_layer(int64_t layer) { layer_ = layer; }
  // Gives the input of a linear layer when the product is due: kept, or gathered again.
  using InputSource = std::function<at::Tensor()>;
  // gradient += d_output^T * input for each of the layers that read one input. input [N, D],
  // d_outputs[i] [N, F_i], parameters[i] [F_i, D].
  void add(const std::vector<Parameter*>& parameters, std::vector<at::Tensor> d_outputs,
           InputSource input);
  bool is_deferring() const { return part_ == BackwardPart::kInputOnly; }
  // Runs what add() queued for the layer, maybe nothing, in the order of the backward pass: same
  // bits as at once.
  void run(int64_t microbatch, int64_t layer);
  // After the last layer of the micro batch; throws InternalError if products are left.
  void end(int64_t microbatch);
  FaultSet faults() const { return faults_; }
  bool empty() const { return queued_.empty(); }
  void clear() { queued_.clear(); }
  // Micro batches that wait for run().
  int64_t num_queued() const { return static_cast<int64_t>(queued_.size()); }

 private:
  struct Products {
    std::vector<Parameter*> parameters;
    std::vector<at::Tensor> d_outputs;
    InputSource input;
  };
  void run(const Products& products) const;
  void accumulate(const Parameter& parameter, const at::Tensor& d_output,
                  const at::Tensor& input) const;

  FaultSet faults_;
  int64_t microbatch_ = 0;
  int64_t layer_ = 0;
  BackwardPart part_ = BackwardPart::kFull;
  // By micro batch, from its begin() to its end(), and layer.
  std::map<int64_t, std::map<int64_t, std::vector<Products>>> queued_;
};

}  // namespace sevenfold

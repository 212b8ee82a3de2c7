#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sevenfold/core/faults.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// What a backward pass computes: everything, or input gradients now and weight gradients when the
// schedule says W.
enum class BackwardPart : uint8_t { kFull, kInputOnly };

// Where the weight gradients of linear layers go: summed into the parameter at once, or queued per
// micro batch. One per rank and chunk; used by the rank's thread (a graph's nodes hold a pointer to
// it).
class WeightGradients {
 public:
  explicit WeightGradients(FaultSet faults = {}) : faults_(faults) {}

  // Says what the linear layers of the backward pass that follows do. With kInputOnly the micro
  // batch waits for run() from here on, even if no layer queues anything.
  void begin(int64_t microbatch, BackwardPart part);
  // Gives the input of a linear layer when the product is due: kept, or gathered again.
  using InputSource = std::function<at::Tensor()>;
  // gradient += d_output^T * input for each of the layers that read one input. input [N, D],
  // d_outputs[i] [N, F_i], parameters[i] [F_i, D].
  void add(const std::vector<Parameter*>& parameters, std::vector<at::Tensor> d_outputs,
           InputSource input);
  bool is_deferring() const { return part_ == BackwardPart::kInputOnly; }
  // Runs what add() queued for the micro batch, in the order of the backward pass: same bits as at
  // once.
  void run(int64_t microbatch);
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
  BackwardPart part_ = BackwardPart::kFull;
  std::map<int64_t, std::vector<Products>> queued_;  // by micro batch
};

}  // namespace sevenfold

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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

  // Says what the linear layers of the backward pass that follows do.
  void begin(int64_t microbatch, BackwardPart part) {
    microbatch_ = microbatch;
    part_ = part;
  }
  // gradient += d_output^T * input. input [N, D], d_output [N, F], parameter [F, D].
  void add(const Parameter& parameter, const at::Tensor& d_output, const at::Tensor& input);
  // Runs what add() queued for the micro batch, in the order of the backward pass: same bits as at
  // once.
  void run(int64_t microbatch);
  FaultSet faults() const { return faults_; }
  bool empty() const { return queued_.empty(); }

 private:
  struct Product {
    const Parameter* parameter;
    at::Tensor d_output;
    at::Tensor input;
  };
  void accumulate(const Product& product);

  FaultSet faults_;
  int64_t microbatch_ = 0;
  BackwardPart part_ = BackwardPart::kFull;
  std::map<int64_t, std::vector<Product>> queued_;  // by micro batch
};

}  // namespace sevenfold

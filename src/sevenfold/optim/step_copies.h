#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/core/faults.h"
#include "sevenfold/optim/optimizer.h"

namespace sevenfold {

// Exact copies of all that a step changes on this rank, so that it can be taken back to the bit:
// the owned weights, the optimizer's states (master weights among them) with the units of fp16
// ones, and its count of steps.
// Undoing a step by arithmetic would round.
class StepCopies {
 public:
  // Optimizer and parameters outlive the copies. Allocates them, booked as optimizer.
  StepCopies(Optimizer& optimizer, std::vector<Parameter*> parameters, FaultSet faults = {});

  // Before a step. No other rank may be writing the weights.
  void take();
  // After it: everything is as it was. No other rank may be reading the owned weights (a gather).
  void restore();

 private:
  // What a step writes, in a fixed order.
  struct Written {
    at::Tensor tensor;
    float* unit = nullptr;  // OptimizerState::unit
  };
  std::vector<Written> written() const;

  Optimizer& optimizer_;
  std::vector<Parameter*> parameters_;
  FaultSet faults_;
  std::vector<at::Tensor> copies_;
  std::vector<float> units_;
  int64_t num_steps_ = 0;
};

// Bytes of the copies per owned element: states and a weight.
int64_t step_copy_bytes(const OptimizerConfig& config, Precision precision);

}  // namespace sevenfold

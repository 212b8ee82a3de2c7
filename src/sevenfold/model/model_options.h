#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sevenfold/config/config.h"
#include "sevenfold/core/faults.h"
#include "sevenfold/parallel/tensor/tensor_parallel.h"

namespace sevenfold {

// What a model needs to know of the run beside its own description.
struct ModelOptions {
  at::ScalarType dtype = at::kFloat;  // of what is computed
  uint64_t seed = 1234;               // of the run: dropout draws with it
  TensorParallel tensor;              // which part of every layer this rank has
  RecomputeConfig recompute;          // of which the parts of layers are the model's business
  FaultSet faults;
};

}  // namespace sevenfold

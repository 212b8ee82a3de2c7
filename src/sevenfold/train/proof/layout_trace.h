#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/core/faults.h"
#include "sevenfold/dataset/sample_source.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {

// What a layout did in a few steps, gathered into logical tensors: the material of every
// comparison.
struct LayoutTrace {
  std::vector<StepResult> steps;
  std::vector<std::map<std::string, at::Tensor>>
      gradients;  // [step][parameter], global shape, before clipping
  std::map<std::string, at::Tensor> final_weights;  // global shape
  // Equal bits of what ranks replicate: weights after every step and, without ZeRO, optimizer
  // states too and gradients after every reduction.
  bool replicas_equal = true;
  // For every axis of degree above 1: whether each step's gradients were computed with its groups
  // (on every rank). Bookkeeping of a few bytes does not count.
  std::map<std::string, bool> axes_used;
  // Whether two micro batches of rank 0 had different numbers of unmasked tokens. Where all have
  // the same, averages of averages come out right and mistakes of that kind do not show.
  bool unequal_tokens = false;
  std::string undeclared_bytes;  // a rank whose parameter bytes are not what its ShardSpecs say
};

struct TraceOptions {
  int64_t steps = 3;
  FaultSet faults;
  // Fills every gradient with 1 before the norm is taken: the norm must be the square root of the
  // number of logical parameters.
  bool ones = false;
};

// Trains `steps` steps on the simulated cluster of config.mesh.
LayoutTrace trace_layout(const Config& config, const SampleSource& source,
                         const TraceOptions& options);

}  // namespace sevenfold

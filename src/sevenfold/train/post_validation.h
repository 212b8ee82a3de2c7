#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sevenfold/dist/rank_context.h"

namespace sevenfold {

// What pipeline stages, one or all, make of a step.
struct PipelineState {
  double loss_sum = 0.0;
  double gradient_norm = 0.0;   // times the loss scale
  bool is_finite = true;        // on every rank
  bool has_all_stepped = true;  // at once
};

// How the ranks of a pipeline learn norm and overflows of a step without waiting for each other
// (Qi et al. 2023, section 4 and appendix C). Each rank adds its part to what comes from the stage
// before it, passes that on and goes on by what it knows; the last rank then knows all and tells
// the others. begin, pass_on and finish take turns, once a step.
//
// Every rank's square sum travels on its own, so that all add them up in the order of the
// all-reduce that a step with a barrier has: the same bits. Bytes sent: 8 (world + 3) to the next
// stage, and a broadcast of as many.
class PostValidation {
 public:
  // rank outlives the object. norm_group: over which square sums are added up.
  PostValidation(RankContext& rank, const std::string& norm_group);

  // This rank's square sum and its stage's loss. Gives the state of the stages up to this one.
  // Collective over the ranks of the stage; waits for the stage before, not for those behind.
  PipelineState begin(double squares, double loss_sum);
  // Sends it on; `steps`: whether this rank steps now.
  void pass_on(bool steps);
  // The state of all stages. Waits for all of them to pass on theirs.
  PipelineState finish();

 private:
  PipelineState read(const at::Tensor& state) const;

  RankContext& rank_;
  std::vector<int64_t> norm_ranks_;  // of the world
  at::Tensor partial_, full_;
  Work passing_on_, coming_back_;
};

}  // namespace sevenfold

#pragma once

#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/param/flat_storage.h"

namespace sevenfold {

// Replicated data parallelism (guide, chapter 2): every rank of a data-parallel group holds the
// same part of the model, reads its own samples, and gradients are summed before the optimizer
// step. Summed, not averaged: the loss is seeded with one over the tokens of the global batch, so
// no divisor exists here.
//
// Gradients of which tensor-parallel ranks hold parts (their ShardSpecs say so) are summed inside
// that group first. A bucket is summed as soon as the layer that adds to it last has run backward,
// while the layers below it still compute. Cost per step: 2 (n-1)/n of the gradient bytes sent per
// rank, n = dp * cp.
class GradientReducer {
 public:
  // Buckets and rank outlive the reducer.
  GradientReducer(std::vector<Bucket>& buckets, RankContext& rank);

  // Called by the layer loop after the last backward of `layer` in this step; starts the sums of
  // the buckets that this completes.
  void layer_complete(int64_t layer);
  // Waits for all sums. After it, gradients are those of the global batch on every rank.
  void finish();

 private:
  void sum_inside_tensor_group(Bucket& bucket);
  void start(Bucket& bucket);

  std::vector<Bucket>& buckets_;
  RankContext& rank_;
  Communicator& group_;
  std::vector<Work> pending_;
};

}  // namespace sevenfold

#pragma once

#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/param/flat_storage.h"

namespace sevenfold {

// Data parallelism (guide, chapters 2 and 3): ranks read their own samples, and gradients are
// summed before the optimizer step. Summed, not averaged: the loss is seeded with one over the
// tokens of the global batch, so no divisor exists here.
//
// Gradients of which tensor-parallel ranks hold parts (their ShardSpecs say so) are summed inside
// that group first. Then, n = dp * cp ranks, bytes sent per rank on average:
//   no ZeRO  all-reduce of a bucket as soon as the layer that adds to it last has run its last
//            backward of the step, while the layers below compute: 2 (n-1)/n of the gradient bytes
//   stage 1  reduce-scatter in its place, each rank keeping the sum of its shard: half of that
//   stage 2  reduce-scatter in every micro batch; the bucket's gradients exist from the first to
//            the last of its layers' backward only, and the shards of micro batches are added up
class GradientReducer {
 public:
  // Buckets, built for `stage`, and rank outlive the reducer. sum_in_bf16: sums over dp and cp send
  // gradients rounded to bf16, half the bytes of fp32; they are added up over micro batches, and
  // over tensor-parallel ranks, as they are.
  GradientReducer(std::vector<Bucket>& buckets, RankContext& rank,
                  ZeroStage stage = ZeroStage::kNone, bool sum_in_bf16 = false);

  // Zeroes what the gradients of a step are summed in.
  void begin_step();
  // Before every backward pass that computes weight gradients: stage 2 lends the first buckets.
  void begin_backward();
  // Called by the layer loop after the last backward of `layer` in this step (stage 2: after every
  // backward); starts the sums of the buckets that this completes.
  void layer_complete(int64_t layer);
  // Waits for all sums. After it, owned gradients are those of the global batch.
  void finish();

  // Whether gradients are summed over the ranks after every micro batch, not once per step.
  bool reduces_every_microbatch() const { return stage_ == ZeroStage::kGradients; }

 private:
  void lend_to(int64_t layer);
  void sum_inside_tensor_group(Bucket& bucket);
  Work reduce(Bucket& bucket);
  void start(Bucket& bucket);
  void add_to_shard(Bucket& bucket);

  std::vector<Bucket>& buckets_;
  RankContext& rank_;
  Communicator& group_;
  ZeroStage stage_;
  bool sums_in_bf16_;
  std::vector<Work> pending_;
};

}  // namespace sevenfold

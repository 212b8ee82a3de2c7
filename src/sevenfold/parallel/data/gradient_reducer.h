#pragma once

#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/nn/weight_gradients.h"
#include "sevenfold/param/flat_storage.h"

namespace sevenfold {

// Data parallelism (guide, chapters 2 and 3): ranks read their own samples, and gradients are
// summed before the optimizer step. Summed, not averaged: the loss is seeded with one over the
// tokens of the global batch, so no divisor exists here.
//
// Gradients of which tensor-parallel ranks hold parts (their ShardSpecs say so) are summed inside
// that group first. Then, n = dp * cp ranks, with several sets of ZeRO shards those of one set,
// bytes sent per rank on average:
//   no ZeRO  all-reduce of a bucket as soon as the layer that adds to it last has run its last
//            backward of the step, while the layers below compute: 2 (n-1)/n of the gradient bytes
//   stage 1  reduce-scatter in its place, each rank keeping the sum of its shard: half of that
//   stages   reduce-scatter in every micro batch; the bucket's gradients exist from the first to
//   2, 3     the last of its layers' backward only, and the shards of micro batches are added up.
//            A split backward does so twice, each part with the gradients that it adds to.
// The R ranks that hold the same shard in R sets sum it at the end of the step: 2 (R-1)/R of it.
// What two pipeline ranks hold copies of (a tied table, twins of a stage) is summed over the two
// after that, each rank's shard or whole by itself.
//
// Layers are numbered through the chunks of a rank, in the order of build_buckets.
class GradientReducer {
 public:
  // Buckets, built for `stage`, and rank outlive the reducer. sum_in_bf16: sums over dp and cp send
  // gradients rounded to bf16, half the bytes of fp32; they are added up over micro batches, and
  // over tensor-parallel ranks, as they are.
  GradientReducer(std::vector<Bucket>& buckets, RankContext& rank,
                  ZeroStage stage = ZeroStage::kNone, bool sum_in_bf16 = false);

  // Zeroes what the gradients of a step are summed in.
  void begin_step();
  // Before every walk down the layers of a chunk that adds to gradients: from stage 2 on lends the
  // first buckets.
  void begin_backward(const LayerRange& chunk);
  // Called by the layer loop after the last backward of `layer` in this step (from stage 2 on:
  // after every backward, and after both parts of a split one); starts the sums of the buckets that
  // this completes.
  void layer_complete(int64_t layer, BackwardPart part = BackwardPart::kFull);
  // Waits for all sums. After it, owned gradients are those of the global batch.
  void finish();

  // Whether gradients are summed over the ranks after every micro batch, not once per step.
  bool reduces_every_microbatch() const { return stage_ >= ZeroStage::kGradients; }

 private:
  void await_all_layers();
  void lend_to(int64_t layer);
  bool is_read_by(const Bucket& bucket, const LayerRange& chunk) const;
  void sum_inside_tensor_group(Bucket& bucket, ElementRange range);
  at::ScalarType sum_type(const Bucket& bucket) const;
  Work reduce(Bucket& bucket, ElementRange range);
  void start(Bucket& bucket, ElementRange range);
  void add_to_shard(Bucket& bucket, ElementRange range);
  void sum_over_replicas();
  void sum_over_owners();

  std::vector<Bucket>& buckets_;
  RankContext& rank_;
  Communicator& group_;
  ZeroStage stage_;
  bool sums_in_bf16_;
  int64_t lowest_layer_ = 0;            // of the chunk that runs backward
  std::vector<size_t> num_incomplete_;  // per bucket: completing layers that are not, this step
  std::vector<Work> pending_;
};

}  // namespace sevenfold

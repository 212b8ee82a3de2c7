#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/param/flat_storage.h"

namespace sevenfold {

struct LayerWeightsOptions {
  ZeroStage stage = ZeroStage::kNone;
  bool overlap = false;               // stages 1, 2: gathers end when a layer needs them
  bool reshard_after_forward = true;  // stage 3: free weights between forward and backward
};

// What a layer's weights are needed for. Directions of travel: evaluation as forward.
enum class LayerPass : uint8_t { kForward, kBackward, kEvaluation };

// ZeRO: the weights that a rank's layers read, of which the n ranks of shard_group each own and
// step on a shard (guide, chapter 3). Called in the layer loop of Chunk: acquire, run the layer,
// release.
//
//   stages 1, 2  every rank keeps whole weights; each bucket is all-gathered once per step, right
//                after the optimizer, or with `overlap` while the layers of the next forward run
//   stage 3      whole weights exist from acquire to release, booked as communication: gathered for
//                forward and again for backward of every micro batch. At most two layers' are alive
//                (one runs, the next is under way), and a tied table from its first to its last use
//
// Bytes sent per rank on average and gather of all weights: (n-1)/n of theirs.
//
// Stale weights: the steps taken on a bucket are counted, and what is acquired must be of the last.
// Unacquired ones: Parameter::weight() throws. Collective: the ranks of the group call in one
// order.
class LayerWeights {
 public:
  // Buckets, built for this stage with weights of equal steps on all ranks, outlive the object.
  LayerWeights(std::vector<Bucket>& buckets, RankContext& rank,
               const LayerWeightsOptions& options = {});

  // Makes the weights of `layer` readable, waiting for their gather, and starts that of `next`, the
  // layer that the caller turns to afterwards. Throws InternalError for weights of an older step.
  void acquire(size_t layer, std::optional<size_t> next = {});
  // Ends what acquire(layer) began. Weights that no later layer of the pass reads are freed.
  void release(size_t layer, LayerPass pass);

  // Waits for the gathers under way: until then other ranks may read this rank's shard.
  void finish();
  // After the optimizer has stepped on each rank's shard, or taken a step back.
  void stepped();

  // Stage 3: frees what passes over some of the rank's chunks have left whole, because a layer of
  // another chunk reads it too.
  void free_all();

  // Calls look(bucket) with each bucket while its weights are readable.
  void visit(const std::function<void(const Bucket&)>& look);

 private:
  // How a bucket's whole weights stand.
  struct Whole {
    int64_t steps = 0;     // taken on the bucket
    int64_t gathered = 0;  // steps that the whole weights hold, or will when `gather` ends
    Work gather;           // pending: under way
  };

  bool frees() const { return options_.stage == ZeroStage::kParameters; }
  void start_gather(size_t bucket);
  void make_readable(size_t bucket);
  void free(size_t bucket);
  template <typename Act>
  void for_buckets_of(size_t layer, const Act& act);

  std::vector<Bucket>& buckets_;
  RankContext& rank_;
  Communicator& group_;
  LayerWeightsOptions options_;
  std::vector<Whole> whole_;  // by bucket
};

}  // namespace sevenfold

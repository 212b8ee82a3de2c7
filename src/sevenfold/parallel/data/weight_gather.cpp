#include "sevenfold/parallel/data/weight_gather.h"

#include <ATen/ATen.h>

namespace sevenfold {

void gather_weights(std::vector<Bucket>& buckets, RankContext& rank) {
  if (rank.faults.has(Fault::kWeightsNotGathered)) return;
  std::vector<Work> pending;
  for (Bucket& bucket : buckets) {
    if (bucket.shard_sizes.empty()) continue;
    const at::Tensor own = bucket.weights.narrow(0, bucket.shard.begin, bucket.shard.size());
    pending.push_back(rank.group("dp-cp").all_gather(bucket.weights, own, bucket.shard_sizes));
  }
  for (Work& work : pending) work.wait();
}

}  // namespace sevenfold

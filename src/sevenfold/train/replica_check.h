#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/optim/optimizer.h"
#include "sevenfold/parallel/data/layer_weights.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// Compares the bits of what ranks replicate: weights of every parameter, over the groups that hold
// copies of it (replica_groups), and its optimizer states where no rank owns a shard only, or where
// several sets of shards are copies (other states that went astray show in the next step's
// weights). Throws Error, alike on all members, with the first parameter in model order whose bits
// differ, what of it differs, and the ranks that are not like the first. Collective; one exchange
// of 8 bytes per tensor, and a pass over the memory, for which ZeRO-3 gathers bucket by bucket.
void check_replicas(const std::vector<Parameter*>& parameters, LayerWeights& weights,
                    const Optimizer& optimizer, bool is_sharded, const RankContext& rank,
                    int64_t iteration);

}  // namespace sevenfold

#pragma once

#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/param/flat_storage.h"

namespace sevenfold {

// ZeRO, after the optimizer has stepped on each rank's shard: all-gathers the weights of every
// bucket in place and waits, so that all ranks hold the same whole weights again. Cost: (n-1)/n of
// the weight bytes sent per rank on average, n = dp * cp. Without ZeRO there is nothing to do.
void gather_weights(std::vector<Bucket>& buckets, RankContext& rank);

}  // namespace sevenfold

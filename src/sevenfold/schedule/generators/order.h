#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/request.h"

namespace sevenfold {

// A schedule of `num_chunks` chunks per rank with no rows yet.
Schedule empty_schedule(const char* algorithm, Placement placement, const ScheduleRequest& request,
                        int64_t num_chunks);

// Adds a row for the stage that the rank holds as `chunk`.
void append(Schedule& schedule, int64_t rank, Op op, int64_t chunk, int64_t microbatch);

// A chunk's pass of a micro batch: an entry of the order in which a rank runs its forwards or its
// backwards.
struct ChunkPass {
  int64_t chunk = 0;
  int64_t microbatch = 0;
};

// Micro batches per group of an interleaved schedule: the request's, else P where it divides M,
// else the smallest that the rule allows. Groups hold at least P micro batches, but for the one
// group of a batch that is shorter than P: inside a group a chunk's first forward needs the
// previous chunk's to have gone round all ranks. So g lies in [min(P, M), M] and M mod g is 0 or at
// least P. Throws ConfigError with the sizes that are legal.
int64_t interleaved_group_size(const ScheduleRequest& request);

// In groups of `group_size` micro batches: all of the group through chunk 0, then through chunk 1,
// ...; with `backward` the chunks from last to first. All ranks run this order.
std::vector<ChunkPass> interleaved_order(int64_t num_microbatches, int64_t num_chunks,
                                         int64_t group_size, bool backward);

// Rows of one rank that runs `warmup` forwards, then a forward and a B in turn, with a W `lag`
// passes after its B, then what is left; in the orders given.
void append_lagged_weights(Schedule& schedule, int64_t rank, const std::vector<ChunkPass>& forwards,
                           const std::vector<ChunkPass>& backwards, int64_t warmup, int64_t lag);

}  // namespace sevenfold

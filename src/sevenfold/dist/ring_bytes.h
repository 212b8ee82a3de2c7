#pragma once

#include <cstdint>
#include <vector>

namespace sevenfold {

// Bytes that one member of a group sends when a collective runs as a ring: what the traffic ledgers
// book on every backend, and what the planner predicts.
namespace ring_bytes {

// Elements of member `index` when `num_elements` are cut into `size` near-equal shards, larger ones
// first.
int64_t shard_elements(int64_t num_elements, int64_t size, int64_t index);

// Reduce-scatter, then all-gather, over near-equal shards: (E - shard(r)) + (E - shard(r + 1))
// elements. Summed over the members: exactly 2 * (size - 1) * E.
int64_t all_reduce(int64_t num_elements, int64_t element_bytes, int64_t size, int64_t rank);
// Everything but the own shard. `sizes`: elements per member.
int64_t reduce_scatter(const std::vector<int64_t>& sizes, int64_t element_bytes, int64_t rank);
// Everything but the shard that the next member already holds.
int64_t all_gather(const std::vector<int64_t>& sizes, int64_t element_bytes, int64_t rank);
// What goes to others. `input_sizes`: elements to each member.
int64_t all_to_all(const std::vector<int64_t>& input_sizes, int64_t element_bytes, int64_t rank);
// Every member but the last behind the root passes the data on.
int64_t broadcast(int64_t bytes, int64_t size, int64_t rank, int64_t root);

}  // namespace ring_bytes
}  // namespace sevenfold

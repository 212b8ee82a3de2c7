#include "sevenfold/dist/ring_bytes.h"

#include <numeric>

namespace sevenfold::ring_bytes {
namespace {

int64_t sum(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

}  // namespace

int64_t shard_elements(int64_t num_elements, int64_t size, int64_t index) {
  return num_elements / size + (index < num_elements % size ? 1 : 0);
}

int64_t all_reduce(int64_t num_elements, int64_t element_bytes, int64_t size, int64_t rank) {
  const int64_t own = shard_elements(num_elements, size, rank);
  const int64_t next = shard_elements(num_elements, size, (rank + 1) % size);
  return (2 * num_elements - own - next) * element_bytes;
}

int64_t reduce_scatter(const std::vector<int64_t>& sizes, int64_t element_bytes, int64_t rank) {
  return (sum(sizes) - sizes[rank]) * element_bytes;
}

int64_t all_gather(const std::vector<int64_t>& sizes, int64_t element_bytes, int64_t rank) {
  const auto size = static_cast<int64_t>(sizes.size());
  return (sum(sizes) - sizes[(rank + 1) % size]) * element_bytes;
}

int64_t all_to_all(const std::vector<int64_t>& input_sizes, int64_t element_bytes, int64_t rank) {
  return (sum(input_sizes) - input_sizes[rank]) * element_bytes;
}

int64_t broadcast(int64_t bytes, int64_t size, int64_t rank, int64_t root) {
  const int64_t distance = (rank - root + size) % size;
  return distance == size - 1 ? 0 : bytes;
}

}  // namespace sevenfold::ring_bytes

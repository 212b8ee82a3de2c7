#include "sevenfold/dist/ring_bytes.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sevenfold::ring_bytes {
namespace {

TEST(RingBytes, AllReduceAddsUpToTwiceTheBytesOfAllButOne) {
  for (int64_t size = 2; size <= 9; ++size) {
    for (int64_t num_elements : {0, 1, 7, 64, 1001}) {
      int64_t total = 0;
      for (int64_t rank = 0; rank < size; ++rank) total += all_reduce(num_elements, 4, size, rank);
      EXPECT_EQ(total, 2 * (size - 1) * num_elements * 4);
    }
  }
}

TEST(RingBytes, AllReduceIsReduceScatterThenAllGather) {
  const std::vector<int64_t> sizes{4, 3, 3};  // 10 elements over 3 members
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(shard_elements(10, 3, rank), sizes[rank]);
    EXPECT_EQ(all_reduce(10, 2, 3, rank),
              reduce_scatter(sizes, 2, rank) + all_gather(sizes, 2, rank));
  }
}

TEST(RingBytes, CountsUnevenShards) {
  const std::vector<int64_t> sizes{5, 0, 2};
  EXPECT_EQ(reduce_scatter(sizes, 4, 0), 8);
  EXPECT_EQ(reduce_scatter(sizes, 4, 1), 28);
  EXPECT_EQ(all_gather(sizes, 4, 0), 28);  // its neighbour's shard is empty
  EXPECT_EQ(all_gather(sizes, 4, 2), 8);
  EXPECT_EQ(all_to_all({1, 2, 3}, 8, 1), 32);
}

TEST(RingBytes, BroadcastPassesTheDataOnUntilTheLast) {
  EXPECT_EQ(broadcast(100, 4, 2, 2), 100);
  EXPECT_EQ(broadcast(100, 4, 0, 2), 100);
  EXPECT_EQ(broadcast(100, 4, 1, 2), 0);
}

}  // namespace
}  // namespace sevenfold::ring_bytes

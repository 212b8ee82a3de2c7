#include "sevenfold/dist/block_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <vector>

namespace sevenfold::block_cache {
namespace {

using enum MemoryCategory;

TEST(BlockCache, AlignsAndDoesNotOverlap) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t num_bytes = 1; num_bytes < 300'000; num_bytes = num_bytes * 5 / 4 + 1) {
    auto* data = static_cast<unsigned char*>(allocate(num_bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    std::memset(data, static_cast<int>(blocks.size()), num_bytes);
    blocks.emplace_back(data, num_bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t byte = 0; byte < blocks[i].second; ++byte) {
      ASSERT_EQ(blocks[i].first[byte], static_cast<unsigned char>(i));
    }
    release(blocks[i].first);
  }
}

TEST(BlockCache, WastesAtMostAQuarterOfALargeRequest) {
  for (size_t num_bytes = 1000; num_bytes < (size_t{1} << 33); num_bytes = num_bytes * 9 / 8 + 3) {
    EXPECT_GE(footprint_bytes(num_bytes), num_bytes + 64);
    EXPECT_LE(footprint_bytes(num_bytes), (num_bytes + 64) * 5 / 4);
  }
}

TEST(BlockCache, ReusesWhatWasFreed) {
  void* data = allocate(5000);
  release(data);
  EXPECT_EQ(allocate(4900), data);
  release(data);
}

TEST(BlockCache, BooksRequestedBytesToTheAllocatingScope) {
  MemoryLedger ledger;
  void* data = nullptr;
  {
    MemoryScope scope(&ledger, kOptimizer);
    data = allocate(1001);
  }
  EXPECT_EQ(ledger.live(kOptimizer), 1001);
  std::thread([data] { release(data); }).join();
  EXPECT_EQ(ledger.live_total(), 0);
  EXPECT_EQ(ledger.peak(kOptimizer), 1001);
}

TEST(BlockCache, MemoryMayOutliveItsLedger) {
  auto ledger = std::make_unique<MemoryLedger>();
  void* data = nullptr;
  {
    MemoryScope scope(ledger.get(), kActivations);
    data = allocate(4000);
  }
  ledger.reset();
  release(data);
}

TEST(BlockCache, RefusesWhatCannotBe) {
  EXPECT_THROW(allocate(static_cast<size_t>(-64)), std::bad_alloc);
  EXPECT_THROW(allocate(size_t{1} << 50), std::bad_alloc);
}

TEST(BlockCache, KeepsExactBooksWithManyThreadsFreeingForEachOther) {
  constexpr int kNumThreads = 6;
  std::vector<MemoryLedger> ledgers(kNumThreads);
  std::mutex mutex;
  std::vector<unsigned char*> in_transit;
  std::vector<std::thread> threads;
  for (int index = 0; index < kNumThreads; ++index) {
    threads.emplace_back([&, index] {
      MemoryScope scope(&ledgers[index], kActivations);
      std::mt19937 random(static_cast<uint32_t>(index));
      for (int turn = 0; turn < 3000; ++turn) {
        auto* data = static_cast<unsigned char*>(allocate(1 + random() % 200'000));
        data[0] = static_cast<unsigned char>(turn);
        std::lock_guard lock(mutex);
        in_transit.push_back(data);
        if (in_transit.size() < 20) continue;
        std::swap(in_transit[random() % in_transit.size()], in_transit.back());
        release(in_transit.back());
        in_transit.pop_back();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned char* data : in_transit) release(data);
  for (const MemoryLedger& ledger : ledgers) {
    EXPECT_EQ(ledger.live_total(), 0);
    EXPECT_GT(ledger.peak_total(), 0);
  }
  trim();
}

}  // namespace
}  // namespace sevenfold::block_cache

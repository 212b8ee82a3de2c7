#include "sevenfold/dist/allocator.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <thread>

#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

using enum MemoryCategory;

Mesh data_parallel(int64_t num_ranks) {
  MeshShape shape;
  shape.dp = num_ranks;
  return Mesh(shape);
}

TEST(Allocator, CountsTheRequestedBytesOfTensors) {
  install_allocator();
  MemoryLedger ledger;
  MemoryScope scope(&ledger, kActivations);
  {
    at::Tensor a = at::empty({1001}, at::kFloat);
    EXPECT_EQ(ledger.live(kActivations), 4004);
    at::Tensor b = a.clone();
    EXPECT_EQ(ledger.live(kActivations), 8008);
    a.resize_({2000});
    EXPECT_EQ(ledger.live(kActivations), 4004 + 8000);
    EXPECT_EQ(ledger.peak(kActivations), 4004 + 4004 + 8000);  // old and new storage while copying
    at::Tensor view = b.view({7, 143});
    b.reset();
    EXPECT_EQ(ledger.live(kActivations), 4004 + 8000);
    EXPECT_EQ(at::empty({0}).numel(), 0);
  }
  EXPECT_EQ(ledger.live_total(), 0);
}

TEST(Allocator, BooksByCategory) {
  install_allocator();
  MemoryLedger ledger;
  MemoryScope scope(&ledger, kActivations);
  at::Tensor parameter, gradient;
  {
    MemoryScope parameters(kParameters);
    parameter = at::zeros({10, 10}, at::kDouble);
  }
  {
    MemoryScope gradients(kGradients);
    gradient = at::zeros({10, 10}, at::kFloat);
  }
  at::Tensor activation = at::ones({3}, at::kBFloat16);
  EXPECT_EQ(ledger.live(kParameters), 800);
  EXPECT_EQ(ledger.live(kGradients), 400);
  EXPECT_EQ(ledger.live(kActivations), 6);
  EXPECT_EQ(ledger.live_total(), 1206);
}

TEST(Allocator, KeepsBooksPerRankAndFreesToTheOwner) {
  std::vector<at::Tensor> handed_over(4);
  run_ranks(data_parallel(4), {}, [&](RankContext& context) {
    const int64_t elements = 100 * (context.rank + 1);
    {
      at::Tensor kept = at::empty({elements}, at::kDouble);
      at::Tensor passing = at::empty({elements}, at::kDouble);
    }
    handed_over[context.rank] = at::empty({elements}, at::kDouble);
    EXPECT_EQ(context.memory.live(kActivations), elements * 8);
    EXPECT_EQ(context.memory.peak_total(), elements * 16);
    context.group("world").barrier();
    handed_over[(context.rank + 1) % 4].reset();  // allocated by the next rank
    context.group("world").barrier();
    EXPECT_EQ(context.memory.live_total(), 0);
  });
}

TEST(Allocator, TensorsMayOutliveTheirRank) {
  at::Tensor kept;
  run_ranks(data_parallel(2), {}, [&](RankContext& context) {
    if (context.rank == 1) kept = at::full({1000}, 3.0, at::kDouble);
  });
  EXPECT_EQ(kept.sum().item<double>(), 3000.0);
  kept.reset();
}

TEST(Allocator, SupportsRawAllocation) {
  install_allocator();
  MemoryLedger ledger;
  MemoryScope scope(&ledger, kCommunication);
  c10::Allocator* allocator = c10::GetCPUAllocator();
  void* memory = allocator->raw_allocate(100);
  EXPECT_EQ(ledger.live(kCommunication), 100);
  allocator->raw_deallocate(memory);
  EXPECT_EQ(ledger.live(kCommunication), 0);
}

TEST(Allocator, DoesNotBookOutsideEveryScope) {
  install_allocator();
  MemoryLedger ledger;
  at::Tensor a = at::empty({10});
  { MemoryScope scope(&ledger, kActivations); }
  at::Tensor b = at::empty({10});
  EXPECT_EQ(ledger.peak_total(), 0);
}

}  // namespace
}  // namespace sevenfold

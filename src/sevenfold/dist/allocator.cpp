#include "sevenfold/dist/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>

#include "sevenfold/dist/block_cache.h"
#include "sevenfold/dist/torch_compat.h"

namespace sevenfold {
namespace {

void release_block(void* data) {
  if (data) block_cache::release(data);
}

class CountingAllocator final : public CompatAllocator {
 public:
  // The context is the data itself: raw_allocate() and raw_deallocate() depend on it.
  c10::DeleterFnPtr raw_deleter() const override { return &release_block; }

 protected:
  c10::DataPtr allocate_block(size_t num_bytes) const override {
    void* data = num_bytes == 0 ? nullptr : block_cache::allocate(num_bytes);
    return {data, data, &release_block, c10::Device(c10::DeviceType::CPU)};
  }
};

// Above the priority of LibTorch's own allocator (0).
constexpr uint8_t kPriority = 100;

}  // namespace

void configure_process_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  mallopt(M_TOP_PAD, 64 << 20);
}

void install_allocator() {
  // Never destroyed: tensors with static storage are freed last.
  static const bool installed = [] {
    c10::SetCPUAllocator(new CountingAllocator, kPriority);
    return true;
  }();
  (void)installed;
}

}  // namespace sevenfold

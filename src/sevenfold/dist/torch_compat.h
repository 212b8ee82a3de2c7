#pragma once

// The one place where LibTorch versions are told apart: 1.13.1 (Debian 12) and 2.7 or newer.

#include <c10/core/Allocator.h>
#include <torch/version.h>

#include <cstring>

namespace sevenfold {

// c10::Allocator with one spelling: 2.x made allocate() non-const and added copy_data().
class CompatAllocator : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(size_t num_bytes) final {
    return allocate_block(num_bytes);
  }
  void copy_data(void* to, const void* from, size_t num_bytes) const final {
    std::memcpy(to, from, num_bytes);
  }
#else
  c10::DataPtr allocate(size_t num_bytes) const final {
    return allocate_block(num_bytes);
  }
#endif

 protected:
  virtual c10::DataPtr allocate_block(size_t num_bytes) const = 0;
};

}  // namespace sevenfold

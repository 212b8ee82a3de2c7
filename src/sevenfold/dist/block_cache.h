#pragma once

#include <cstddef>
#include <cstdint>

#include "sevenfold/dist/ledger.h"

namespace sevenfold {

// The counting, caching store behind the tensor allocator; torch-free. Memory comes from the system
// once per block and is then reused by size class: a freshly mapped page costs about 12 us, more
// than most kernels spend on it. Blocks of a MiB and more ask for huge pages. Any thread may free
// what any other allocated.
namespace block_cache {

// 64-byte aligned memory for num_bytes > 0, booked to the calling thread's MemoryScope. Throws
// std::bad_alloc when the system has no more, after giving back what is cached.
void* allocate(size_t num_bytes);
// Books the bytes off the ledger that they were booked to. data: from allocate().
void release(void* data) noexcept;
// Gives the blocks that are cached for all threads back to the system, and the calling thread's.
void trim() noexcept;

// Bytes that a request takes from the system, header included (the size class).
size_t footprint_bytes(size_t num_bytes);

}  // namespace block_cache
}  // namespace sevenfold

#pragma once

namespace sevenfold {

// Makes glibc keep memory instead of returning it to the system: without it a training step spends
// more than half its time on page faults. First thing in main, before anything allocates.
void configure_process_memory();

// Makes the counting, caching store of block_cache.h LibTorch's CPU allocator: every tensor is
// booked to the MemoryLedger of the thread that allocates it. Call it before the first tensor
// exists; again: no-op. Tensors allocated before it are freed by the allocator that they came from.
void install_allocator();

}  // namespace sevenfold

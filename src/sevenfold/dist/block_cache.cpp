#include "sevenfold/dist/block_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

namespace sevenfold::block_cache {
namespace {

constexpr size_t kAlignment = 64;
// Size classes of whole blocks: four per doubling from 256 bytes, so at most a fifth of a block is
// unused.
constexpr int kSmallestLog2 = 8;
constexpr int kLargestLog2 = 46;
constexpr int kNumClasses = (kLargestLog2 - kSmallestLog2) * 4;
// Blocks up to this size are also cached per thread, without a lock; larger ones cost far more to
// fill than a lock does, and are better shared.
constexpr size_t kThreadCacheBytes = size_t{1} << 20;  // of one class
constexpr size_t kThreadCacheBlocks = 64;              // of one class

// Blocks from this size ask for huge pages: fewer translations for products that read their
// operands down the columns, every row on another page. A step gains a few percent at most.
constexpr size_t kHugeFromBytes = size_t{1} << 20;
constexpr uintptr_t kHugePageBytes = uintptr_t{1} << 21;
// The heaps of glibc's threads: aligned pieces of this size. Larger blocks are mapped on their own.
constexpr uintptr_t kHeapBytes = uintptr_t{1} << 26;

// In front of the data; in a free list `next` links it.
struct alignas(kAlignment) Header {
  MemoryCounters* owner;
  Header* next;
  int64_t requested_bytes;
  int32_t size_class;
  MemoryCategory category;
};
static_assert(sizeof(Header) == kAlignment);

int class_of(size_t block_bytes) {
  const size_t bytes = std::max(block_bytes, size_t{1} << kSmallestLog2);
  const auto log2 =
      static_cast<int>(std::bit_width(bytes - 1)) - 1;  // 2^log2 < bytes <= 2^(log2 + 1)
  if (log2 < kSmallestLog2) return 0;
  const size_t quarter = size_t{1} << (log2 - 2);
  const auto step = static_cast<int>((bytes - (size_t{1} << log2) + quarter - 1) / quarter);
  return (log2 - kSmallestLog2) * 4 + step;
}

size_t class_bytes(int size_class) {
  const int log2 = kSmallestLog2 + size_class / 4;
  return (size_t{1} << log2) + static_cast<size_t>(size_class % 4) * (size_t{1} << (log2 - 2));
}

size_t thread_cache_limit(int size_class) {
  return std::min(kThreadCacheBlocks, kThreadCacheBytes / class_bytes(size_class));
}

void give_back(Header* list) noexcept {
  while (list) std::free(std::exchange(list, list->next));
}

struct FreeList {
  Header* head = nullptr;
  size_t length = 0;

  void push(Header* block) {
    block->next = head;
    head = block;
    ++length;
  }
  Header* pop() {
    if (!head) return nullptr;
    --length;
    return std::exchange(head, head->next);
  }
  Header* take_all() {
    length = 0;
    return std::exchange(head, nullptr);
  }
  // Moves up to `count` blocks.
  void move_to(FreeList& other, size_t count) {
    while (count-- > 0 && head) other.push(pop());
  }
};

// Free blocks that every thread may take; one lock per class.
struct SharedLists {
  struct alignas(kAlignment) Shard {
    std::mutex mutex;
    FreeList blocks;
  };
  std::array<Shard, kNumClasses> shards;
};

// Never destroyed: tensors with static storage are freed after any destructor of ours could run.
SharedLists& shared_lists() {
  static auto* lists = new SharedLists;
  return *lists;
}

struct ThreadLists;
// Plain pointers, so that they can be read after the thread's lists are gone: a tensor may be freed
// by the destructor of some other thread-local object.
thread_local ThreadLists* thread_lists = nullptr;
thread_local bool thread_lists_are_gone = false;

struct ThreadLists {
  std::array<FreeList, kNumClasses> blocks;

  ThreadLists() { thread_lists = this; }
  ~ThreadLists() {
    thread_lists = nullptr;
    thread_lists_are_gone = true;
    for (int size_class = 0; size_class < kNumClasses; ++size_class) {
      FreeList& list = blocks[size_class];
      if (list.length == 0) continue;
      SharedLists::Shard& shard = shared_lists().shards[size_class];
      std::lock_guard lock(shard.mutex);
      list.move_to(shard.blocks, list.length);
    }
  }
};

// Null for a class that is not cached per thread, and while the thread ends.
FreeList* thread_list(int size_class) {
  if (thread_cache_limit(size_class) == 0) return nullptr;
  if (!thread_lists) {
    if (thread_lists_are_gone) return nullptr;
    static thread_local ThreadLists lists;
  }
  return &thread_lists->blocks[size_class];
}

// A cached block, or null. Takes half a thread cache at once, so that the lock is rare.
Header* take_cached(int size_class) {
  FreeList* own = thread_list(size_class);
  if (own && own->head) return own->pop();
  SharedLists::Shard& shard = shared_lists().shards[size_class];
  std::lock_guard lock(shard.mutex);
  if (own) shard.blocks.move_to(*own, thread_cache_limit(size_class) / 2);
  return own && own->head ? own->pop() : shard.blocks.pop();
}

void put_cached(Header* block) noexcept {
  const int size_class = block->size_class;
  FreeList* own = thread_list(size_class);
  if (own && own->length < thread_cache_limit(size_class)) return own->push(block);
  SharedLists::Shard& shard = shared_lists().shards[size_class];
  std::lock_guard lock(shard.mutex);
  shard.blocks.push(block);
  if (own) own->move_to(shard.blocks, own->length / 2);
}

// For the whole heap: malloc itself writes behind each block that it hands out, and a page that is
// touched before it is asked for stays small. Only a hint: other memory works as well.
void ask_for_huge_pages(void* memory, size_t bytes) {
  const uintptr_t unit = bytes < kHeapBytes / 2 ? kHeapBytes : kHugePageBytes;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory) & ~(unit - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(memory) + bytes;
  madvise(reinterpret_cast<void*>(begin), (end - begin + unit - 1) & ~(unit - 1), MADV_HUGEPAGE);
}

Header* take_from_system(int size_class) {
  const size_t bytes = class_bytes(size_class);
  void* memory = std::aligned_alloc(kAlignment, bytes);
  if (!memory) {
    trim();
    memory = std::aligned_alloc(kAlignment, bytes);
  }
  if (!memory) throw std::bad_alloc();
  if (bytes >= kHugeFromBytes) ask_for_huge_pages(memory, bytes);
  auto* block = new (memory) Header;
  block->size_class = size_class;
  return block;
}

}  // namespace

void* allocate(size_t num_bytes) {
  if (num_bytes > (size_t{1} << (kLargestLog2 - 1))) throw std::bad_alloc();
  const int size_class = class_of(num_bytes + sizeof(Header));
  Header* block = take_cached(size_class);
  if (!block) block = take_from_system(size_class);
  block->requested_bytes = static_cast<int64_t>(num_bytes);
  block->category = MemoryScope::current_category();
  block->owner = MemoryScope::current_counters();
  if (block->owner) {
    block->owner->retain();
    block->owner->add(block->category, block->requested_bytes);
  }
  return block + 1;
}

void release(void* data) noexcept {
  Header* block = static_cast<Header*>(data) - 1;
  if (MemoryCounters* owner = block->owner) {
    owner->remove(block->category, block->requested_bytes);
    owner->release();
  }
  put_cached(block);
}

void trim() noexcept {
  for (int size_class = 0; size_class < kNumClasses; ++size_class) {
    if (FreeList* own = thread_list(size_class)) give_back(own->take_all());
    SharedLists::Shard& shard = shared_lists().shards[size_class];
    std::lock_guard lock(shard.mutex);
    give_back(shard.blocks.take_all());
  }
}

size_t footprint_bytes(size_t num_bytes) {
  return class_bytes(class_of(num_bytes + sizeof(Header)));
}

}  // namespace sevenfold::block_cache

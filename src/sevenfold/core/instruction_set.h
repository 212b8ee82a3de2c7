#pragma once

#include <cstdint>

namespace sevenfold {

// Loops that are compiled for several generations of processors and chosen among when they run. All
// versions give the same bits: products and sums are rounded separately, and the order of every sum
// is written down in the loop.
enum class InstructionSet : uint8_t { kPortable, kAvx2, kAvx512 };

// The newest set that this processor has, or what the thread's ForcedInstructionSet says.
InstructionSet instruction_set();

// Makes the calling thread's loops use `set` (or an older one, where the processor lacks it) until
// the end of the scope: how tests compare the versions. Scopes do not nest.
class ForcedInstructionSet {
 public:
  explicit ForcedInstructionSet(InstructionSet set);
  ~ForcedInstructionSet();
  ForcedInstructionSet(const ForcedInstructionSet&) = delete;
  ForcedInstructionSet& operator=(const ForcedInstructionSet&) = delete;
};

#ifdef __x86_64__
template <typename Loop>
[[gnu::target("avx2")]] void run_with_avx2(const Loop& loop) {
  loop();
}

template <typename Loop>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void run_with_avx512(
    const Loop& loop) {
  loop();
}
#endif

// Runs `loop` as compiled for instruction_set(). Its call operator, and every function that it
// calls, must be always_inline: a function of its own would be compiled for the oldest processor.
template <typename Loop>
void run_vectorized(const Loop& loop) {
#ifdef __x86_64__
  switch (instruction_set()) {
    case InstructionSet::kAvx512:
      return run_with_avx512(loop);
    case InstructionSet::kAvx2:
      return run_with_avx2(loop);
    case InstructionSet::kPortable:
      break;
  }
#endif
  loop();
}

}  // namespace sevenfold
